// RUN: %ember-opt --split-input-file --verify-diagnostics %s | filecheck %s

// Every message of the verifiers and the parser of slcvec.

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>, %r: memref<?xf32>, %k: !slc.stream<vector<4xi1>>, %i: !slc.stream<vector<4xindex>>, %b: !slc.stream<memref<?xf32>>, %x: !slc.stream<vector<4xf32>>) {
  slcvec.for<5>(%d xx %o) = %v to %v step %v mask %k : (index xx !slc.stream<vector<4xi1>>) -> (!slc.stream<vector<5xindex>> xx !slc.stream<vector<5xi1>>) {
  }
  func.return
}
// CHECK: error: 'slcvec.for' ({{.*}}): vectorLength must be one of 2, 3, 4, 8, 16, 32, 64, not 5

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>, %r: memref<?xf32>, %k: !slc.stream<vector<4xi1>>, %i: !slc.stream<vector<4xindex>>, %b: !slc.stream<memref<?xf32>>, %x: !slc.stream<vector<4xf32>>) {
  slcvec.for<4>(%d xx %o) = %f to %f step %f mask %k : (f32 xx !slc.stream<vector<4xi1>>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
  }
  func.return
}
// CHECK: error: 'slcvec.for' ({{.*}}): type of the bounds must be index, !slc.stream<index> or !slc.stream<vector<4xindex>>, not f32

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>, %r: memref<?xf32>, %k: !slc.stream<vector<4xi1>>, %i: !slc.stream<vector<4xindex>>, %b: !slc.stream<memref<?xf32>>, %x: !slc.stream<vector<4xf32>>) {
  "slcvec.for"(%v, %s, %v, %k) <{vectorLength = 4 : index, loopConfig = #slcvec<loop_config bcast>}> ({
  ^bb0(%d: !slc.stream<vector<4xindex>>, %o: !slc.stream<vector<4xi1>>):
    slcvec.yield
  }) : (index, !slc.stream<index>, index, !slc.stream<vector<4xi1>>) -> ()
  func.return
}
// CHECK: error: 'slcvec.for' ({{.*}}): type of the upper bound must be the lower bound's type index, not !slc.stream<index>

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>, %r: memref<?xf32>, %k: !slc.stream<vector<4xi1>>, %i: !slc.stream<vector<4xindex>>, %b: !slc.stream<memref<?xf32>>, %x: !slc.stream<vector<4xf32>>) {
  "slcvec.for"(%v, %v, %s, %k) <{vectorLength = 4 : index, loopConfig = #slcvec<loop_config bcast>}> ({
  ^bb0(%d: !slc.stream<vector<4xindex>>, %o: !slc.stream<vector<4xi1>>):
    slcvec.yield
  }) : (index, index, !slc.stream<index>, !slc.stream<vector<4xi1>>) -> ()
  func.return
}
// CHECK: error: 'slcvec.for' ({{.*}}): type of the step must be the lower bound's type index, not !slc.stream<index>

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>, %r: memref<?xf32>, %k: !slc.stream<vector<4xi1>>, %i: !slc.stream<vector<4xindex>>, %b: !slc.stream<memref<?xf32>>, %x: !slc.stream<vector<4xf32>>) {
  slcvec.for<8>(%d xx %o) = %v to %v step %v mask %k : (index xx !slc.stream<vector<4xi1>>) -> (!slc.stream<vector<8xindex>> xx !slc.stream<vector<8xi1>>) {
  }
  func.return
}
// CHECK: error: 'slcvec.for' ({{.*}}): type of the mask must be vector<8xi1> or !slc.stream<vector<8xi1>>, not !slc.stream<vector<4xi1>>

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>, %r: memref<?xf32>, %k: !slc.stream<vector<4xi1>>, %i: !slc.stream<vector<4xindex>>, %b: !slc.stream<memref<?xf32>>, %x: !slc.stream<vector<4xf32>>) {
  slcvec.for<4>(%d xx %o) = %v to %v step %v mask %k : (index xx !slc.stream<vector<4xi1>>) -> (!slc.stream<index> xx !slc.stream<vector<4xi1>>) {
  }
  func.return
}
// CHECK: error: 'slcvec.for' ({{.*}}): first body arguments of the loop must be the vector and mask streams (!slc.stream<vector<4xindex>>, !slc.stream<vector<4xi1>>), not (!slc.stream<index>, !slc.stream<vector<4xi1>>)

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>, %r: memref<?xf32>, %k: !slc.stream<vector<4xi1>>, %i: !slc.stream<vector<4xindex>>, %b: !slc.stream<memref<?xf32>>, %x: !slc.stream<vector<4xf32>>) {
  %q = slcvec.for<4>(%d xx %o) = %v to %v step %v mask %k init_args(%a = %v) -> (index) : (index xx !slc.stream<vector<4xi1>>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
    slcvec.yield
  }
  func.return
}
// CHECK: error: 'slcvec.for' (%q, {{.*}}): types of the loop's yielded values must be those of init_args (index), not ()

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>, %r: memref<?xf32>, %k: !slc.stream<vector<4xi1>>, %i: !slc.stream<vector<4xindex>>, %b: !slc.stream<memref<?xf32>>, %x: !slc.stream<vector<4xf32>>) {
  slcvec.for<4>(%d xx %o) = %v to %v step %v mask %k : (index xx !slc.stream<vector<4xi1>>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
  } {loopConfig = #slcvec<loop_config bcast>, vectorLength = 4 : index}
  func.return
}
// CHECK: error: {{.*}}: vectorLength must be given once, in '<' '>' after the name of slcvec.for, not again in the attribute dictionary

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>, %r: memref<?xf32>, %k: !slc.stream<vector<4xi1>>, %i: !slc.stream<vector<4xindex>>, %b: !slc.stream<memref<?xf32>>, %x: !slc.stream<vector<4xf32>>) {
  slcvec.for<4>(%d xx %o) = %v to %v step %v mask %k : (index xx !slc.stream<vector<4xi1>>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
  } {loopConfig = 1 : i64}
  func.return
}
// CHECK: error: {{.*}}: loopConfig must be #slcvec<loop_config ..>, not 1 : i64

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>, %r: memref<?xf32>, %k: !slc.stream<vector<4xi1>>, %i: !slc.stream<vector<4xindex>>, %b: !slc.stream<memref<?xf32>>, %x: !slc.stream<vector<4xf32>>) {
  %q = slcvec.mem_stream %m[%i] : memref<?x?xf32>[!slc.stream<vector<4xindex>>] into !slc.stream<vector<4xf32>>
  func.return
}
// CHECK: error: 'slcvec.mem_stream' (%q, {{.*}}): number of indices must be the memref's rank 2, not 1

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>, %r: memref<?xf32>, %k: !slc.stream<vector<4xi1>>, %i: !slc.stream<vector<4xindex>>, %b: !slc.stream<memref<?xf32>>, %x: !slc.stream<vector<4xf32>>) {
  %q = slcvec.mem_stream %m[%s, %i] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>] into !slc.stream<vector<5xf32>>
  func.return
}
// CHECK: error: 'slcvec.mem_stream' (%q, {{.*}}): element of the result stream must be a vector of 2, 3, 4, 8, 16, 32, 64 lanes, not vector<5xf32>

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>, %r: memref<?xf32>, %k: !slc.stream<vector<4xi1>>, %i: !slc.stream<vector<4xindex>>, %b: !slc.stream<memref<?xf32>>, %x: !slc.stream<vector<4xf32>>) {
  %q = slcvec.mem_stream %m[%s, %i] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>] into !slc.stream<vector<4xf16>>
  func.return
}
// CHECK: error: 'slcvec.mem_stream' (%q, {{.*}}): element of the result vectors must be the memref's element type f32, not f16

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>, %r: memref<?xf32>, %k: !slc.stream<vector<4xi1>>, %i: !slc.stream<vector<4xindex>>, %b: !slc.stream<memref<?xf32>>, %x: !slc.stream<vector<4xf32>>) {
  %q = slcvec.mem_stream %m[%s, %i] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>] into !slc.stream<vector<8xf32>>
  func.return
}
// CHECK: error: 'slcvec.mem_stream' (%q, {{.*}}): type of an index must be index, !slc.stream<index> or !slc.stream<vector<8xindex>>, not !slc.stream<vector<4xindex>>

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>, %r: memref<?xf32>, %k: !slc.stream<vector<4xi1>>, %i: !slc.stream<vector<4xindex>>, %b: !slc.stream<memref<?xf32>>, %x: !slc.stream<vector<4xf32>>) {
  %q = slcvec.broadcast %s : !slc.stream<index> to !slc.stream<index>
  func.return
}
// CHECK: error: 'slcvec.broadcast' (%q, {{.*}}): vector side of the op must be a vector of 2, 3, 4, 8, 16, 32, 64 lanes, not index

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>, %r: memref<?xf32>, %k: !slc.stream<vector<4xi1>>, %i: !slc.stream<vector<4xindex>>, %b: !slc.stream<memref<?xf32>>, %x: !slc.stream<vector<4xf32>>) {
  %q = slcvec.broadcast %s : !slc.stream<index> to !slc.stream<vector<4xf32>>
  func.return
}
// CHECK: error: 'slcvec.broadcast' (%q, {{.*}}): scalar side of the op must be the vector's element type f32, not index

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>, %r: memref<?xf32>, %k: !slc.stream<vector<4xi1>>, %i: !slc.stream<vector<4xindex>>, %b: !slc.stream<memref<?xf32>>, %x: !slc.stream<vector<4xf32>>) {
  %q = slcvec.extract %i[4 : i64] : !slc.stream<vector<4xindex>> -> !slc.stream<index>
  func.return
}
// CHECK: error: 'slcvec.extract' (%q, {{.*}}): lane index must be at least 0 and below 4, not 4

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>, %r: memref<?xf32>, %k: !slc.stream<vector<4xi1>>, %i: !slc.stream<vector<4xindex>>, %b: !slc.stream<memref<?xf32>>, %x: !slc.stream<vector<4xf32>>) {
  %q = slcvec.extract %i[-1 : i64] : !slc.stream<vector<4xindex>> -> !slc.stream<index>
  func.return
}
// CHECK: error: 'slcvec.extract' (%q, {{.*}}): lane index must be at least 0 and below 4, not -1

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>, %r: memref<?xf32>, %k: !slc.stream<vector<4xi1>>, %i: !slc.stream<vector<4xindex>>, %b: !slc.stream<memref<?xf32>>, %x: !slc.stream<vector<4xf32>>) {
  %q = slcvec.extract %i[0 : i64] : !slc.stream<vector<4xindex>> -> !slc.stream<f32>
  func.return
}
// CHECK: error: 'slcvec.extract' (%q, {{.*}}): scalar side of the op must be the vector's element type index, not f32

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>, %r: memref<?xf32>, %k: !slc.stream<vector<4xi1>>, %i: !slc.stream<vector<4xindex>>, %b: !slc.stream<memref<?xf32>>, %x: !slc.stream<vector<4xf32>>) {
  %q = slcvec.tmp_vec_stream_cast %i : !slc.stream<vector<4xindex>> to !slc.stream<f32>
  func.return
}
// CHECK: error: 'slcvec.tmp_vec_stream_cast' (%q, {{.*}}): scalar side of the op must be the vector's element type index, not f32

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>, %r: memref<?xf32>, %k: !slc.stream<vector<4xi1>>, %i: !slc.stream<vector<4xindex>>, %b: !slc.stream<memref<?xf32>>, %x: !slc.stream<vector<4xf32>>) {
  %q = slcvec.tmp_vec_cast %f : f32 to f32
  func.return
}
// CHECK: error: 'slcvec.tmp_vec_cast' (%q, {{.*}}): vector side of the op must be a vector of 2, 3, 4, 8, 16, 32, 64 lanes, not f32

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>, %r: memref<?xf32>, %k: !slc.stream<vector<4xi1>>, %i: !slc.stream<vector<4xindex>>, %b: !slc.stream<memref<?xf32>>, %x: !slc.stream<vector<4xf32>>) {
  %q = slcvec.buf_stream : !slc.stream<memref<?x?xf32>>
  func.return
}
// CHECK: error: 'slcvec.buf_stream' (%q, {{.*}}): element of the buffer must be a memref of one dimension, not memref<?x?xf32>

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>, %r: memref<?xf32>, %k: !slc.stream<vector<4xi1>>, %i: !slc.stream<vector<4xindex>>, %b: !slc.stream<memref<?xf32>>, %x: !slc.stream<vector<4xf32>>) {
  slcvec.to_buffer %i, %b[%i] : !slc.stream<vector<4xindex>> -> !slc.stream<memref<?xf32>>[!slc.stream<vector<4xindex>>]
  func.return
}
// CHECK: error: 'slcvec.to_buffer' ({{.*}}): element put into the buffer must be the buffer's element type f32, not index

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>, %r: memref<?xf32>, %k: !slc.stream<vector<4xi1>>, %i: !slc.stream<vector<4xindex>>, %b: !slc.stream<memref<?xf32>>, %x: !slc.stream<vector<4xf32>>) {
  slcvec.to_buffer %x, %b[%i, %i] : !slc.stream<vector<4xf32>> -> !slc.stream<memref<?xf32>>[!slc.stream<vector<4xindex>>, !slc.stream<vector<4xindex>>]
  func.return
}
// CHECK: error: 'slcvec.to_buffer' ({{.*}}): number of indices must be the buffer's rank 1, not 2

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>, %r: memref<?xf32>, %k: !slc.stream<vector<4xi1>>, %i: !slc.stream<vector<4xindex>>, %b: !slc.stream<memref<?xf32>>, %x: !slc.stream<vector<4xf32>>) {
  slcvec.to_buffer %x, %b[%s] : !slc.stream<vector<4xf32>> -> !slc.stream<memref<?xf32>>[!slc.stream<index>]
  func.return
}
// CHECK: error: 'slcvec.to_buffer' ({{.*}}): type of the index must be !slc.stream<vector<4xindex>>, not !slc.stream<index>

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>, %r: memref<?xf32>, %k: !slc.stream<vector<4xi1>>, %i: !slc.stream<vector<4xindex>>, %b: !slc.stream<memref<?xf32>>, %x: !slc.stream<vector<4xf32>>) {
  %q = slcvec.from_buffer %m[%v] : memref<?x?xf32>[index] -> vector<4xf32>
  func.return
}
// CHECK: error: 'slcvec.from_buffer' (%q, {{.*}}): buffer must be a memref of one dimension, not memref<?x?xf32>

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>, %r: memref<?xf32>, %k: !slc.stream<vector<4xi1>>, %i: !slc.stream<vector<4xindex>>, %b: !slc.stream<memref<?xf32>>, %x: !slc.stream<vector<4xf32>>) {
  %q = slcvec.from_buffer %r[%v, %v] : memref<?xf32>[index, index] -> vector<4xf32>
  func.return
}
// CHECK: error: 'slcvec.from_buffer' (%q, {{.*}}): number of indices must be the buffer's rank 1, not 2

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>, %r: memref<?xf32>, %k: !slc.stream<vector<4xi1>>, %i: !slc.stream<vector<4xindex>>, %b: !slc.stream<memref<?xf32>>, %x: !slc.stream<vector<4xf32>>) {
  %q = slcvec.from_buffer %r[%v] : memref<?xf32>[index] -> vector<4xf16>
  func.return
}
// CHECK: error: 'slcvec.from_buffer' (%q, {{.*}}): type of the result must be the buffer's element type f32 or a vector of it, not vector<4xf16>

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>, %r: memref<?xf32>, %k: !slc.stream<vector<4xi1>>, %i: !slc.stream<vector<4xindex>>, %b: !slc.stream<memref<?xf32>>, %x: !slc.stream<vector<4xf32>>) {
  %q = slcvec.vec_indvar %v %v %v %v : vector<4xi1>
  func.return
}
// CHECK: error: 'slcvec.vec_indvar' (%q, {{.*}}): element of the result must be index, not i1

// -----

func.func @f(%v: index, %s: !slc.stream<index>, %f: f32, %m: memref<?x?xf32>, %r: memref<?xf32>, %k: !slc.stream<vector<4xi1>>, %i: !slc.stream<vector<4xindex>>, %b: !slc.stream<memref<?xf32>>, %x: !slc.stream<vector<4xf32>>) {
  %q = slcvec.mask %v %v %v %v : vector<7xi1>
  func.return
}
// CHECK: error: 'slcvec.mask' (%q, {{.*}}): type of the result must be a vector of 2, 3, 4, 8, 16, 32, 64 lanes, not vector<7xi1>
