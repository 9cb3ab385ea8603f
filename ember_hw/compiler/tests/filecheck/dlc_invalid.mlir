// RUN: %ember-opt --split-input-file --verify-diagnostics %s | filecheck %s

// Every message of the verifiers of dlc.

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>) {
  "dlc.configure_access_engine"() ({
  ^bb0(%x: index):
    dlc.yield
  }) : () -> ()
  func.return
}
// CHECK: error: 'dlc.configure_access_engine' ({{.*}}): number of body arguments of the access program must be 0, not 1

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>) {
  dlc.configure_access_engine {
    %t = dlc.new_tu %f to %f step %f : f32 into !dlc.tu
  } :
  func.return
}
// CHECK: error: 'dlc.new_tu' (%t, {{.*}}): type of the bounds must be index or !slc.stream<index>, not f32

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>) {
  dlc.configure_access_engine {
    %t = dlc.new_tu %v to %v step %v : index into !dlc.tu
    %i = dlc.get_ind_var %t : !slc.stream<i64>
  } :
  func.return
}
// CHECK: error: 'dlc.get_ind_var' (%i, {{.*}}): type of the induction variable must be !slc.stream<index>, not !slc.stream<i64>

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>) {
  %r = dlc.row_stream %m[%s, %s] len %v : memref<?x?xf32>[!slc.stream<index>, !slc.stream<index>], index into !slc.stream<memref<?xf32>>
  func.return
}
// CHECK: error: 'dlc.row_stream' (%r, {{.*}}): number of indices must be the memref's rank 2 less 1, not 2

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>) {
  %r = dlc.row_stream %m[%f] len %v : memref<?x?xf32>[f32], index into !slc.stream<memref<?xf32>>
  func.return
}
// CHECK: error: 'dlc.row_stream' (%r, {{.*}}): type of an index must be index or !slc.stream<index>, not f32

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>) {
  %r = dlc.row_stream %m[%s] len %v : memref<?x?xf32>[!slc.stream<index>], index into !slc.stream<memref<8xf32>>
  func.return
}
// CHECK: error: 'dlc.row_stream' (%r, {{.*}}): type of the result must be the row stream !slc.stream<memref<?xf32>>, not !slc.stream<memref<8xf32>>

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>) {
  "dlc.compute_loop"() <{cases = array<i64: 1, 2>}> ({
    dlc.yield
  }) : () -> ()
  func.return
}
// CHECK: error: 'dlc.compute_loop' ({{.*}}): number of cases must be that of regions 1, not 2

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>) {
  dlc.compute_loop
  case 1 {
  }
  case 1 {
  }
  func.return
}
// CHECK: error: 'dlc.compute_loop' ({{.*}}): number of a case must be given once, not 1 again

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>) {
  "dlc.compute_loop"() <{cases = array<i64: 3>}> ({
  ^bb0(%x: index):
    dlc.yield
  }) : () -> ()
  func.return
}
// CHECK: error: 'dlc.compute_loop' ({{.*}}): number of arguments of case 3 must be 0, not 1

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>) {
  dlc.configure_access_engine {
    %r = dlc.row_stream %m[%v] len %f : memref<?x?xf32>[index], f32 into !slc.stream<memref<?xf32>>
  } :
  func.return
}
// CHECK: error: 'dlc.row_stream' (%r, {{.*}}): type of the length must be index or !slc.stream<index>, not f32
