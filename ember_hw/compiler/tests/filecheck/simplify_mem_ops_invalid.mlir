// RUN: %ember-opt --split-input-file --verify-diagnostics -p 'simplify-mem-ops' %s | filecheck %s

// The message of simplify-mem-ops.

func.func @f(%n: index, %x: memref<?xf32>, %t: memref<?x?xf32>, %y: memref<?xf32>, %k: memref<?xi64>, %p: i1, %f: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %all = arith.constant dense<true> : vector<4xi1>
  %some = arith.constant dense<[true, false, true, true]> : vector<4xi1>
  %zeros = arith.constant dense<0.0> : vector<4xf32>
  %z = slc.to_stream %c0 : index to !slc.stream<index>
  %u = slc.to_stream %c1 : index to !slc.stream<index>
  %v4 = slc.to_stream %c4 : index to !slc.stream<index>
  slc.for %r = %c0 to %n step %c1 : index -> !slc.stream<index> {
    slcvec.for<4>(%d xx %m) = %c0 to %n step %c3 mask %all : (index xx vector<4xi1>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
      slc.callback {
        %h = slc.from_stream %m : !slc.stream<vector<4xi1>> to vector<4xi1>
      }
    } {loopConfig = #slcvec<loop_config bcast>}
  }
  func.return
}
// CHECK: error: step of the vector loop must be a multiple of its 4 lanes, not 3 (op 'slcvec.for' in function 'f')
