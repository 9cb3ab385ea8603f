// RUN: %ember-opt --split-input-file --verify-diagnostics -p 'callback-vectorizer' %s | filecheck %s

// Every message of callback-vectorizer.

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
    slcvec.for<4>(%d xx %m) = %c0 to %n step %c4 mask %all : (index xx vector<4xi1>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
      %v = slcvec.mem_stream %t[%r, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>] into !slc.stream<vector<4xf32>>
      %w = slcvec.tmp_vec_stream_cast %v : !slc.stream<vector<4xf32>> to !slc.stream<f32>
      slc.callback {
        %h = slc.from_stream %w : !slc.stream<f32> to f32
        %c = math.cbrt %h : f32
      }
    } {loopConfig = #slcvec<loop_config bcast>}
  }
  func.return
}
// CHECK: error: callback of a vector loop must be vectorisable, not one where 'math.cbrt' has no vector form (op 'slc.callback' in function 'f')

// -----

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
    slcvec.for<4>(%d xx %m) = %c0 to %n step %c4 mask %all : (index xx vector<4xi1>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
      %v = slcvec.mem_stream %t[%r, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>] into !slc.stream<vector<4xf32>>
      %w = slcvec.tmp_vec_stream_cast %v : !slc.stream<vector<4xf32>> to !slc.stream<f32>
      %b = slcvec.broadcast %w : !slc.stream<f32> to !slc.stream<vector<4xf32>>
    } {loopConfig = #slcvec<loop_config bcast>}
  }
  func.return
}
// CHECK: error: user of a vector stream must be an slc.from_stream, not 'slcvec.broadcast' (op 'slcvec.broadcast' in function 'f')
