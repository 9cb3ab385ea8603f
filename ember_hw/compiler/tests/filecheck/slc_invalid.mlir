// RUN: %ember-opt --split-input-file --verify-diagnostics %s | filecheck %s

// Every message of the verifiers of slc.

func.func @f(%s: !slc.stream<none>) {
  func.return
}
// CHECK: error: {{.*}}: element of a stream must be an index, integer, float, vector or memref, not none

// -----

func.func @f(%s: !slc.stream<vector<2x4xf32>>) {
  func.return
}
// CHECK: error: {{.*}}: vector element of a stream must be of one dimension, not vector<2x4xf32>

// -----

func.func @f(%v: index, %m: memref<?x?xf32>, %s: !slc.stream<index>, %i: !slc.stream<i64>, %b: !slc.stream<f32>) {
  %t = slc.to_stream %v : index to !slc.stream<f32>
  func.return
}
// CHECK: error: 'slc.to_stream' (%t, {{.*}}): element of the result stream must be the value's type index, not f32

// -----

func.func @f(%v: index, %m: memref<?x?xf32>, %s: !slc.stream<index>, %i: !slc.stream<i64>, %b: !slc.stream<f32>) {
  %t = slc.from_stream %s : !slc.stream<index> to f32
  func.return
}
// CHECK: error: 'slc.from_stream' (%t, {{.*}}): type of the value read must be the stream's element index, not f32

// -----

func.func @f(%v: index, %m: memref<?x?xf32>, %s: !slc.stream<index>, %i: !slc.stream<i64>, %b: !slc.stream<f32>) {
  %t = slc.cast_stream %b : !slc.stream<f32> to !slc.stream<index>
  func.return
}
// CHECK: error: 'slc.cast_stream' (%t, {{.*}}): element of the stream to cast must be an integer wider than i1, not f32

// -----

func.func @f(%v: index, %m: memref<?x?xf32>, %s: !slc.stream<index>, %i: !slc.stream<i64>, %b: !slc.stream<f32>) {
  %t = slc.cast_stream %i : !slc.stream<i64> to !slc.stream<i32>
  func.return
}
// CHECK: error: 'slc.cast_stream' (%t, {{.*}}): element of the cast stream must be index, not i32

// -----

func.func @f(%v: index, %m: memref<?x?xf32>, %s: !slc.stream<index>, %i: !slc.stream<i64>, %b: !slc.stream<f32>) {
  %t = slc.mem_stream %m[%s] : memref<?x?xf32>[!slc.stream<index>] into !slc.stream<f32>
  func.return
}
// CHECK: error: 'slc.mem_stream' (%t, {{.*}}): number of indices must be the memref's rank 2, not 1

// -----

func.func @f(%v: index, %m: memref<?x?xf32>, %s: !slc.stream<index>, %i: !slc.stream<i64>, %b: !slc.stream<f32>) {
  %t = slc.mem_stream %m[%s, %b] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<f32>] into !slc.stream<f32>
  func.return
}
// CHECK: error: 'slc.mem_stream' (%t, {{.*}}): type of an index must be index or !slc.stream<index>, not !slc.stream<f32>

// -----

func.func @f(%v: index, %m: memref<?x?xf32>, %s: !slc.stream<index>, %i: !slc.stream<i64>, %b: !slc.stream<f32>) {
  %t = slc.mem_stream %m[%s, %v] : memref<?x?xf32>[!slc.stream<index>, index] into !slc.stream<f16>
  func.return
}
// CHECK: error: 'slc.mem_stream' (%t, {{.*}}): element of the result stream must be the memref's element type f32, not f16

// -----

func.func @f(%v: index, %m: memref<?x?xf32>, %s: !slc.stream<index>, %i: !slc.stream<i64>, %b: !slc.stream<f32>) {
  %t = slc.alu_stream<add> %b, %s : !slc.stream<f32>, !slc.stream<index> -> !slc.stream<index>
  func.return
}
// CHECK: error: 'slc.alu_stream' (%t, {{.*}}): type of the left operand must be index or !slc.stream<index>, not !slc.stream<f32>

// -----

func.func @f(%v: index, %m: memref<?x?xf32>, %s: !slc.stream<index>, %i: !slc.stream<i64>, %b: !slc.stream<f32>) {
  %t = slc.alu_stream<sub> %s, %i : !slc.stream<index>, !slc.stream<i64> -> !slc.stream<index>
  func.return
}
// CHECK: error: 'slc.alu_stream' (%t, {{.*}}): type of the right operand must be index or !slc.stream<index>, not !slc.stream<i64>

// -----

func.func @f(%v: index, %m: memref<?x?xf32>, %s: !slc.stream<index>, %i: !slc.stream<i64>, %b: !slc.stream<f32>) {
  %t = slc.alu_stream<mul> %s, %v : !slc.stream<index>, index -> !slc.stream<f32>
  func.return
}
// CHECK: error: 'slc.alu_stream' (%t, {{.*}}): type of the result must be !slc.stream<index>, not !slc.stream<f32>

// -----

func.func @f(%v: index, %m: memref<?x?xf32>, %s: !slc.stream<index>, %i: !slc.stream<i64>, %b: !slc.stream<f32>) {
  slc.for %k = %i to %i step %i : !slc.stream<i64> -> !slc.stream<index> {
  }
  func.return
}
// CHECK: error: 'slc.for' ({{.*}}): type of the bounds must be index or !slc.stream<index>, not !slc.stream<i64>

// -----

func.func @f(%v: index, %m: memref<?x?xf32>, %s: !slc.stream<index>, %i: !slc.stream<i64>, %b: !slc.stream<f32>) {
  "slc.for"(%s, %v, %s) ({
  ^bb0(%k: !slc.stream<index>):
    slc.yield
  }) : (!slc.stream<index>, index, !slc.stream<index>) -> ()
  func.return
}
// CHECK: error: 'slc.for' ({{.*}}): type of the upper bound must be the lower bound's type !slc.stream<index>, not index

// -----

func.func @f(%v: index, %m: memref<?x?xf32>, %s: !slc.stream<index>, %i: !slc.stream<i64>, %b: !slc.stream<f32>) {
  "slc.for"(%s, %s, %v) ({
  ^bb0(%k: !slc.stream<index>):
    slc.yield
  }) : (!slc.stream<index>, !slc.stream<index>, index) -> ()
  func.return
}
// CHECK: error: 'slc.for' ({{.*}}): type of the step must be the lower bound's type !slc.stream<index>, not index

// -----

func.func @f(%v: index, %m: memref<?x?xf32>, %s: !slc.stream<index>, %i: !slc.stream<i64>, %b: !slc.stream<f32>) {
  slc.for %k = %v to %v step %v : index -> index {
  }
  func.return
}
// CHECK: error: 'slc.for' ({{.*}}): first body argument of the loop must be the induction variable of type !slc.stream<index>, not index

// -----

func.func @f(%v: index, %m: memref<?x?xf32>, %s: !slc.stream<index>, %i: !slc.stream<i64>, %b: !slc.stream<f32>) {
  "slc.for"(%s, %s, %s) ({
    slc.yield
  }) : (!slc.stream<index>, !slc.stream<index>, !slc.stream<index>) -> ()
  func.return
}
// CHECK: error: 'slc.for' ({{.*}}): first body argument of the loop must be the induction variable of type !slc.stream<index>, not absent

// -----

func.func @f(%v: index, %m: memref<?x?xf32>, %s: !slc.stream<index>, %i: !slc.stream<i64>, %b: !slc.stream<f32>) {
  %r = "slc.for"(%v, %v, %v, %v) ({
  ^bb0(%k: !slc.stream<index>):
    slc.yield %v : index
  }) : (index, index, index, index) -> index
  func.return
}
// CHECK: error: 'slc.for' (%r, {{.*}}): types of the loop's body arguments must be those of init_args (index), not ()

// -----

func.func @f(%v: index, %m: memref<?x?xf32>, %s: !slc.stream<index>, %i: !slc.stream<i64>, %b: !slc.stream<f32>) {
  "slc.for"(%v, %v, %v, %v) ({
  ^bb0(%k: !slc.stream<index>, %x: index):
    slc.yield %x : index
  }) : (index, index, index, index) -> ()
  func.return
}
// CHECK: error: 'slc.for' ({{.*}}): types of the loop's results must be those of init_args (index), not ()

// -----

func.func @f(%v: index, %m: memref<?x?xf32>, %s: !slc.stream<index>, %i: !slc.stream<i64>, %b: !slc.stream<f32>) {
  %r = slc.for %k = %v to %v step %v init_args(%x = %v) -> (index) : index -> !slc.stream<index> {
    slc.yield
  }
  func.return
}
// CHECK: error: 'slc.for' (%r, {{.*}}): types of the loop's yielded values must be those of init_args (index), not ()

// -----

func.func @f(%v: index, %m: memref<?x?xf32>, %s: !slc.stream<index>, %i: !slc.stream<i64>, %b: !slc.stream<f32>) {
  "slc.callback"() ({
  ^bb0(%x: index):
    slc.yield
  }) : () -> ()
  func.return
}
// CHECK: error: 'slc.callback' ({{.*}}): number of body arguments of a callback must be 0, not 1

// -----

func.func @f(%v: index, %m: memref<?x?xf32>, %s: !slc.stream<index>, %i: !slc.stream<i64>, %b: !slc.stream<f32>) {
  %r = "slc.callback"() ({
    slc.yield
  }) : () -> index
  func.return
}
// CHECK: error: 'slc.callback' (%r, {{.*}}): types yielded by the callback must be its result types (index), not ()

// -----

func.func @f(%v: index, %m: memref<?x?xf32>, %s: !slc.stream<index>, %i: !slc.stream<i64>, %b: !slc.stream<f32>) {
  %r = slc.callback {
    slc.yield %v : index
  } : f32
  func.return
}
// CHECK: error: 'slc.callback' (%r, {{.*}}): types yielded by the callback must be its result types (f32), not (index)

// -----

func.func @f(%v: index, %m: memref<?x?xf32>, %s: !slc.stream<index>, %i: !slc.stream<i64>, %b: !slc.stream<f32>) {
  %r = slc.callback {
    slc.yield
  } : index
  func.return
}
// CHECK: error: {{.*}}: Operation has 0 results, but was given 1 to bind.

// -----

func.func @f(%v: index, %m: memref<?xf32>, %s: !slc.stream<index>) {
  %t = slc.mem_stream %m[%s] {nontemporal = true, keep = true} : memref<?xf32>[!slc.stream<index>] into !slc.stream<f32>
  func.return
}
// CHECK: error: 'slc.mem_stream' (%t, {{.*}}): hint of a read must be nontemporal or keep, not both

// -----

func.func @f(%v: index, %m: memref<?xf32>, %b: !slc.stream<f32>) {
  %t = slc.view %m at %b rows %v len %v pitch %v : memref<?xf32>[!slc.stream<f32>, index, index, index] to memref<?x?xf32, strided<[?, 1], offset: ?>>
  func.return
}
// CHECK: error: 'slc.view' (%t, {{.*}}): type of a view's shape must be index or !slc.stream<index>, not !slc.stream<f32>

// -----

func.func @f(%v: index, %m: memref<?x?xf32>) {
  %t = slc.view %m at %v rows %v len %v pitch %v : memref<?x?xf32>[index, index, index, index] to memref<?x?xf32, strided<[?, 1], offset: ?>>
  func.return
}
// CHECK: error: 'slc.view' (%t, {{.*}}): memory of a view must be a memref of one dimension, not memref<?x?xf32>

// -----

func.func @f(%v: index, %m: memref<?xf32>) {
  %t = slc.view %m at %v rows %v len %v pitch %v : memref<?xf32>[index, index, index, index] to memref<?x?xf32, strided<[?, 2], offset: ?>>
  func.return
}
// CHECK: error: 'slc.view' (%t, {{.*}}): view must be a memref of two dimensions with unit stride in the last, not memref<?x?xf32, strided<[?, 2], offset: ?>>

// -----

func.func @f(%v: index, %m: memref<?xf32>) {
  %t = slc.view %m at %v rows %v len %v pitch %v : memref<?xf32>[index, index, index, index] to memref<?x?xi64, strided<[?, 1], offset: ?>>
  func.return
}
// CHECK: error: 'slc.view' (%t, {{.*}}): element type of a view must be the memory's f32, not memref<?x?xi64, strided<[?, 1], offset: ?>>
