// RUN: %ember-opt --split-input-file --verify-diagnostics -p check-dae %s | filecheck %s

// Every message of check-dae on slc and slcvec.

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %h = slc.from_stream %s : !slc.stream<index> to index
  func.return
}
// CHECK: error: 'slc.from_stream' (%h, {{.*}}): place must be the top level of an slc.callback, not func.func

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  slc.for %i = %c0 to %n step %c1 : index -> !slc.stream<index> {
    slc.callback {
      scf.for %j = %c0 to %n step %c1 {
        %h = slc.from_stream %i : !slc.stream<index> to index
      }
    }
  }
  func.return
}
// CHECK: error: 'slc.from_stream' (%h, {{.*}}): place must be the top level of an slc.callback, not scf.for

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  slc.for %i = %c0 to %n step %c1 : index -> !slc.stream<index> {
    slc.callback {
      %p = builtin.unrealized_conversion_cast %i : !slc.stream<index> to index
    }
  }
  func.return
}
// CHECK: error: 'builtin.unrealized_conversion_cast' (%p, {{.*}}): operand in a callback must be read by slc.from_stream, not !slc.stream<index>

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  slc.for %i = %c0 to %n step %c1 : index -> !slc.stream<index> {
    slc.callback {
      %v = slc.mem_stream %m[%i] : memref<?xf32>[!slc.stream<index>] into !slc.stream<f32>
    }
  }
  func.return
}
// CHECK: error: 'slc.mem_stream' (%v, {{.*}}): place must be the access side, not inside an slc.callback

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = slc.for %i = %c0 to %n step %c1 init_args(%a = %s) -> (!slc.stream<index>) : index -> !slc.stream<index> {
    slc.yield %a : !slc.stream<index>
  }
  func.return
}
// CHECK: error: 'slc.for' (%r, {{.*}}): init_args must be execute values, not !slc.stream<index>

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  slc.for %i = %c0 to %n step %c1 : index -> !slc.stream<index> {
    %r = slc.callback {
      slc.yield %c1 : index
    } : index
    slc.for %j = %c0 to %r step %c1 : index -> !slc.stream<index> {
      slc.yield
    }
  }
  func.return
}
// CHECK: error: 'slc.callback' (%r, {{.*}}): execute value %r must be used in callbacks, init_args and yields, not by slc.for

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = slc.for %i = %c0 to %n step %c1 init_args(%a = %c0) -> (index) : index -> !slc.stream<index> {
    %v = slc.mem_stream %m[%a] : memref<?xf32>[index] into !slc.stream<f32>
    slc.yield %a : index
  }
  func.return
}
// CHECK: error: 'slc.for' (%r, {{.*}}): execute value %a must be used in callbacks, init_args and yields, not by slc.mem_stream

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = slc.for %i = %c0 to %n step %c1 init_args(%a = %c0) -> (index) : index -> !slc.stream<index> {
    slc.yield %a : index
  }
  %q = slc.to_stream %r : index to !slc.stream<index>
  func.return
}
// CHECK: error: 'slc.for' (%r, {{.*}}): execute value %r must be used in callbacks, init_args and yields, not by slc.to_stream

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  slc.for %i = %c0 to %n step %c1 : index -> !slc.stream<index> {
    slc.callback {
    }
    %v = slc.mem_stream %m[%i] : memref<?xf32>[!slc.stream<index>] into !slc.stream<f32>
  }
  func.return
}
// CHECK: error: 'slc.mem_stream' (%v, {{.*}}): stream must stand above callbacks and inner loops, not below

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  slc.for %i = %c0 to %n step %c1 : index -> !slc.stream<index> {
    %q = arith.addi %n, %c1 : index
  }
  func.return
}
// CHECK: error: 'arith.addi' (%q, {{.*}}): op must stand in an slc.callback, not directly in slc.for

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  slcvec.for<4>(%d xx %o) = %c0 to %n step %c1 mask %k : (index xx vector<4xi1>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
    slcvec.yield
  }
  func.return
}
// CHECK: error: 'slcvec.for' ({{.*}}): step must be a constant multiple of 4, not 1

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  slcvec.for<4>(%d xx %o) = %c0 to %n step %n mask %k : (index xx vector<4xi1>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
    slcvec.yield
  }
  func.return
}
// CHECK: error: 'slcvec.for' ({{.*}}): step must be a constant multiple of 4, not unknown

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  slcvec.for<4>(%d xx %o) = %c0 to %n step %c4 mask %k : (index xx vector<4xi1>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
    %v = slcvec.mem_stream %t[%d, %n] : memref<?x?xf32>[!slc.stream<vector<4xindex>>, index] into !slc.stream<vector<4xf32>>
  }
  func.return
}
// CHECK: error: 'slcvec.mem_stream' (%v, {{.*}}): index before the last must be a scalar, not !slc.stream<vector<4xindex>>

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %b = slcvec.buf_stream : !slc.stream<memref<?xf32>>
  func.return
}
// CHECK: error: 'slcvec.buf_stream' (%b, {{.*}}): number of slcvec.to_buffer into a buffer must be 1, not 0

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %b = slcvec.buf_stream : !slc.stream<memref<?xf32>>
  slcvec.for<4>(%d xx %o) = %c0 to %n step %c4 mask %k : (index xx vector<4xi1>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
    %v = slcvec.mem_stream %m[%d] : memref<?xf32>[!slc.stream<vector<4xindex>>] into !slc.stream<vector<4xf32>>
    %e = slcvec.extract %d[0 : i64] : !slc.stream<vector<4xindex>> -> !slc.stream<index>
    %w = slcvec.broadcast %e : !slc.stream<index> to !slc.stream<vector<4xindex>>
    slcvec.to_buffer %v, %b[%w] : !slc.stream<vector<4xf32>> -> !slc.stream<memref<?xf32>>[!slc.stream<vector<4xindex>>]
  }
  func.return
}
// CHECK: error: 'slcvec.to_buffer' ({{.*}}): index must be the induction variable of the loop around, not %w

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  slcvec.for<4>(%d xx %o) = %c0 to %n step %c4 mask %k : (index xx vector<4xi1>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
    %e = slcvec.tmp_vec_stream_cast %d : !slc.stream<vector<4xindex>> to !slc.stream<index>
  }
  func.return
}
// CHECK: error: 'slcvec.tmp_vec_stream_cast' (%e, {{.*}}): op must be gone after the vectorizer, not left

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %w = slcvec.from_buffer %m[%n] : memref<?xf32>[index] -> vector<4xf32>
  func.return
}
// CHECK: error: 'slcvec.from_buffer' (%w, {{.*}}): place must be an slc.callback, not func.func

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  slc.callback {
    scf.for %j = %c0 to %n step %c1 {
      %w = slcvec.from_buffer %m[%j] : memref<?xf32>[index] -> vector<4xf32>
    }
  }
  func.return
}
// CHECK: error: 'slcvec.from_buffer' (%w, {{.*}}): step of the scf.for over its chunks must be 4, not 1

// -----

func.func @f(%n: index, %m: memref<?xf32>, %t: memref<?x?xf32>, %s: !slc.stream<index>, %k: vector<4xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  slc.callback {
    scf.for %j = %c0 to %n step %c1 {
      %w = slcvec.mask %j %c0 %n %c4 : vector<4xi1>
    }
  }
  func.return
}
// CHECK: error: 'slcvec.mask' (%w, {{.*}}): step of the scf.for over its chunks must be 16, not 1
