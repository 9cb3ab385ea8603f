// RUN: %ember-opt --split-input-file --verify-diagnostics -p 'slc-to-dlc' %s | filecheck %s

// Every message of slc-to-dlc.

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
  slc.callback {
  }
  func.return
}
// CHECK: error: op at function level must be a loop or host code, not 'slc.callback' (op 'slc.callback' in function 'f')

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
  slc.for %i = %c0 to %n step %c1 : index -> !slc.stream<index> {
    %q = slc.callback {
      slc.yield %c1 : index
    } : index
    %a = slc.alu_stream<add> %i, %q : !slc.stream<index>, index -> !slc.stream<index>
  }
  func.return
}
// CHECK: error: operand of the access program must be a stream that the access program computes, not one of type index (op 'slc.alu_stream' in function 'f')

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
  %q = slc.for %i = %c0 to %n step %c1 init_args(%s = %f) -> (f32) : index -> !slc.stream<index> {
    slc.yield %s : f32
  }
  func.return
}
// CHECK: error: values carried by a loop of the access unit must be none, not 1 (op 'slc.for' in function 'f')

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
  slc.for %i = %c0 to %n step %c1 : index -> !slc.stream<index> {
    %q = slc.callback {
      slc.yield %f : f32
    } : f32
  }
  func.return
}
// CHECK: error: results of a callback must be none, not 1 (op 'slc.callback' in function 'f')

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
  slc.for %i = %c0 to %n step %c1 : index -> !slc.stream<index> {
    memref.store %f, %x[%c0] : memref<?xf32>
  }
  func.return
}
// CHECK: error: op of a loop of the access unit must be a stream, a callback or a loop, not 'memref.store' (op 'memref.store' in function 'f')

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
  slc.for %i = %c0 to %n step %c1 : index -> !slc.stream<index> {
    slc.callback {
      scf.if %p {
        %h = slc.from_stream %i : !slc.stream<index> to index
      }
    }
  }
  func.return
}
// CHECK: error: read of a stream must be at the top level of its callback, not inside 'scf.if' (op 'slc.from_stream' in function 'f')

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
    } {loopConfig = #slcvec<loop_config vec>}
  }
  func.return
}
// CHECK: error: loopConfig must be bcast, not vec (op 'slcvec.for' in function 'f')

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
    slcvec.for<4>(%d xx %m) = %c0 to %n step %c4 mask %some : (index xx vector<4xi1>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
      %v = slcvec.mem_stream %t[%r, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>] into !slc.stream<vector<4xf32>>
    } {loopConfig = #slcvec<loop_config bcast>}
  }
  func.return
}
// CHECK: error: mask of a vector loop must be a constant without a false lane, not another (op 'slcvec.for' in function 'f')

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
      slc.callback {
        %h = slc.from_stream %m : !slc.stream<vector<4xi1>> to vector<4xi1>
      }
    } {loopConfig = #slcvec<loop_config bcast>}
  }
  func.return
}
// CHECK: error: mask vector of a loop must be recomputed by the execute side (simplify-mem-ops), not read by a callback (op 'slc.from_stream' in function 'f')

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
      %v = slcvec.mem_stream %t[%r, %r] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<index>] into !slc.stream<vector<4xf32>>
    } {loopConfig = #slcvec<loop_config bcast>}
  }
  func.return
}
// CHECK: error: last index of a vector stream must be its loop's induction variable, not !slc.stream<index> (op 'slcvec.mem_stream' in function 'f')

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
    %b = slcvec.buf_stream : !slc.stream<memref<?xf32>>
    slcvec.for<4>(%d xx %m) = %z to %r step %v4 mask %all : (!slc.stream<index> xx vector<4xi1>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
      %v = slcvec.mem_stream %t[%r, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>] into !slc.stream<vector<4xf32>>
      slcvec.to_buffer %v, %b[%d] : !slc.stream<vector<4xf32>> -> !slc.stream<memref<?xf32>>[!slc.stream<vector<4xindex>>]
    } {loopConfig = #slcvec<loop_config bcast>}
  }
  func.return
}
// CHECK: error: length of a row must be a host value or that of a table whose shape is loaded, not one of type !slc.stream<index> (op 'slcvec.for' in function 'f')

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
    %b = slcvec.buf_stream : !slc.stream<memref<?xf32>>
    slcvec.for<4>(%d xx %m) = %c0 to %n step %c4 mask %all : (index xx vector<4xi1>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
      %v = slcvec.mem_stream %t[%r, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>] into !slc.stream<vector<4xf32>>
      slcvec.to_buffer %v, %b[%d] : !slc.stream<vector<4xf32>> -> !slc.stream<memref<?xf32>>[!slc.stream<vector<4xindex>>]
      slc.callback {
      }
    } {loopConfig = #slcvec<loop_config bcast>}
  }
  func.return
}
// CHECK: error: op of a loop that fills rows must be a memory stream or its slcvec.to_buffer, not 'slc.callback' (op 'slc.callback' in function 'f')
