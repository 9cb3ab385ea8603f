// RUN: %ember-opt --split-input-file -p choose-decoupling,scf-to-slc,slc-vectorizer %s | filecheck %s

// Every reason to leave a loop scalar.

func.func @f(%n: index, %x: memref<?xf32>, %t: memref<?x?xf32>, %y: memref<?xf32>, %u: memref<?x?xf32>) attributes {ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %f0 = arith.constant 0.0 : f32
  scf.for %i = %c0 to %n step %c2 {
    %v = memref.load %x[%i] : memref<?xf32>
    memref.store %v, %y[%i] : memref<?xf32>
  }
  func.return
}
// CHECK: {ember.remark = "not vectorised: its step isn't 1"}

// -----

func.func @f(%n: index, %x: memref<?xf32>, %o: memref<?xindex>, %y: memref<?xf32>) attributes {ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %e = memref.load %o[%i] : memref<?xindex>
    scf.for %j = %c0 to %e step %c1 {
      %v = memref.load %x[%j] : memref<?xf32>
      memref.store %v, %y[%j] : memref<?xf32>
    }
  }
  func.return
}
// CHECK: {ember.remark = "not vectorised: its upper bound isn't known to the host"}

// -----

func.func @f(%n: index, %x: memref<?xf32>, %t: memref<?x?xf32>, %y: memref<?xf32>, %u: memref<?x?xf32>) attributes {ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %f0 = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %f0) -> (f32) {
    %v = memref.load %x[%i] : memref<?xf32>
    %a = arith.divf %s, %v : f32
    scf.yield %a : f32
  }
  memref.store %r, %y[%c0] : memref<?xf32>
  func.return
}
// CHECK: {ember.remark = "not vectorised: %s isn't carried for one fold"}

// -----

func.func @f(%n: index, %x: memref<?xf32>, %t: memref<?x?xf32>, %y: memref<?xf32>, %u: memref<?x?xf32>) attributes {ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %f0 = arith.constant 0.0 : f32
  scf.for %i = %c0 to %n step %c1 {
    %k = arith.addi %i, %c1 : index
    %v = memref.load %x[%k] : memref<?xf32>
    memref.store %v, %y[%i] : memref<?xf32>
  }
  func.return
}
// CHECK: {ember.remark = "not vectorised: 'slc.alu_stream' computes with the induction variable"}

// -----

func.func @f(%n: index, %x: memref<?xf32>, %t: memref<?x?xf32>, %y: memref<?xf32>, %u: memref<?x?xf32>) attributes {ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %f0 = arith.constant 0.0 : f32
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %t[%i, %i] : memref<?x?xf32>
    memref.store %v, %y[%i] : memref<?xf32>
  }
  func.return
}
// CHECK: {ember.remark = "not vectorised: %t isn't read contiguously"}

// -----

func.func @f(%n: index, %s: memref<?xf32, strided<[2]>>, %x: memref<?xf32>, %t: memref<?x?xf32>, %y: memref<?xf32>, %u: memref<?x?xf32>) attributes {ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %f0 = arith.constant 0.0 : f32
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %s[%i] : memref<?xf32, strided<[2]>>
    memref.store %v, %y[%i] : memref<?xf32>
  }
  func.return
}
// CHECK: {ember.remark = "not vectorised: %s isn't read contiguously"}

// -----

func.func @f(%n: index, %z: memref<?xi64>, %x: memref<?xf32>, %t: memref<?x?xf32>, %y: memref<?xf32>, %u: memref<?x?xf32>) attributes {ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %f0 = arith.constant 0.0 : f32
  scf.for %i = %c0 to %n step %c1 {
    %k = memref.load %z[%i] : memref<?xi64>
    %j = arith.index_cast %k : i64 to index
    %v = memref.load %x[%j] : memref<?xf32>
    memref.store %v, %y[%i] : memref<?xf32>
  }
  func.return
}
// CHECK: {ember.remark = "not vectorised: 'slc.cast_stream' computes with a vector stream"}

// -----

func.func @f(%n: index, %x: memref<?xf32>, %t: memref<?x?xf32>, %y: memref<?xf32>, %u: memref<?x?xf32>) attributes {ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %f0 = arith.constant 0.0 : f32
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<?xf32>
  }
  func.return
}
// CHECK: {ember.remark = "not vectorised: it has no callbacks"}

// -----

func.func @f(%n: index, %p: i1, %x: memref<?xf32>, %t: memref<?x?xf32>, %y: memref<?xf32>, %u: memref<?x?xf32>) attributes {ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %f0 = arith.constant 0.0 : f32
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<?xf32>
    scf.if %p {
      memref.store %v, %y[%i] : memref<?xf32>
    }
  }
  func.return
}
// CHECK: {ember.remark = "not vectorised: its callback holds 'scf.if'"}

// -----

func.func @f(%n: index, %x: memref<?xf32>, %t: memref<?x?xf32>, %y: memref<?xf32>, %u: memref<?x?xf32>) attributes {ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %f0 = arith.constant 0.0 : f32
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<?xf32>
    %s = math.cbrt %v : f32
    memref.store %s, %y[%i] : memref<?xf32>
  }
  func.return
}
// CHECK: {ember.remark = "not vectorised: 'math.cbrt' has no vector form"}

// -----

func.func @f(%n: index, %x: memref<?xf32>, %t: memref<?x?xf32>, %y: memref<?xf32>, %u: memref<?x?xf32>) attributes {ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %f0 = arith.constant 0.0 : f32
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<?xf32>
    %a = memref.load %y[%c0] : memref<?xf32>
    %s = arith.addf %a, %v : f32
    memref.store %s, %y[%c0] : memref<?xf32>
  }
  func.return
}
// CHECK: {ember.remark = "not vectorised: a store doesn't have the induction variable as its last index"}

// -----

func.func @f(%n: index, %x: memref<?xf32>, %t: memref<?x?xf32>, %y: memref<?xf32>, %u: memref<?x?xf32>) attributes {ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %f0 = arith.constant 0.0 : f32
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<?xf32>
    memref.store %v, %u[%i, %i] : memref<?x?xf32>
  }
  func.return
}
// CHECK: {ember.remark = "not vectorised: 'memref.store' isn't contiguous in the induction variable"}

// -----

func.func @f(%n: index, %x: memref<?xf32>, %t: memref<?x?xf32>, %y: memref<?xf32>, %u: memref<?x?xf32>) attributes {ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %f0 = arith.constant 0.0 : f32
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<?xf32>
    %k = arith.index_cast %i : index to i64
    %g = arith.sitofp %k : i64 to f32
    %s = arith.addf %v, %g : f32
    memref.store %s, %y[%i] : memref<?xf32>
  }
  func.return
}
// CHECK: {ember.remark = "not vectorised: 'arith.index_cast' computes with the induction variable"}

// -----

func.func @f(%n: index, %x: memref<?xf32>, %t: memref<?x?xf32>, %y: memref<?xf32>, %u: memref<?x?xf32>) attributes {ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %f0 = arith.constant 0.0 : f32
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<?xf32>
    %a = memref.load %y[%c0] : memref<?xf32>
    %s = arith.addf %a, %v : f32
    memref.store %s, %y[%i] : memref<?xf32>
  }
  func.return
}
// CHECK: {ember.remark = "not vectorised: stored memref %y is accessed at two places"}

// -----

func.func @f(%n: index, %w: memref<?xf32, strided<[2]>>, %x: memref<?xf32>, %t: memref<?x?xf32>, %y: memref<?xf32>, %u: memref<?x?xf32>) attributes {ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %f0 = arith.constant 0.0 : f32
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<?xf32>
    memref.store %v, %w[%i] : memref<?xf32, strided<[2]>>
  }
  func.return
}
// CHECK: {ember.remark = "not vectorised: %w has no unit stride in its last dimension"}

// -----

func.func @f(%n: index, %x: memref<?xf32>, %t: memref<?x?xf32>, %y: memref<?xf32>, %u: memref<?x?xf32>) attributes {ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %f0 = arith.constant 0.0 : f32
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<?xf32>
    %k = memref.dim %y, %c0 : memref<?xf32>
    memref.store %v, %y[%i] : memref<?xf32>
  }
  func.return
}
// CHECK: {ember.remark = "not vectorised: its callback holds 'memref.dim'"}

// -----

func.func @f(%n: index, %x: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  slc.for %i = %c0 to %n step %c1 : index -> !slc.stream<index> {
    %v = slc.mem_stream %x[%i] : memref<?xf32>[!slc.stream<index>] into !slc.stream<f32>
  }
  func.return
}
// CHECK: {ember.remark = "not vectorised: its bounds aren't streams"}

// -----

func.func @f(%n: index, %x: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %lb = slc.to_stream %c0 : index to !slc.stream<index>
  %ub = slc.to_stream %n : index to !slc.stream<index>
  %st = slc.to_stream %c1 : index to !slc.stream<index>
  slc.for %i = %lb to %ub step %st : !slc.stream<index> -> !slc.stream<index> {
    %v = slc.mem_stream %x[%i] : memref<?xf32>[!slc.stream<index>] into !slc.stream<f32>
    %r = slc.callback {
      %h = slc.from_stream %v : !slc.stream<f32> to f32
      slc.yield %h : f32
    } : f32
  }
  func.return
}
// CHECK: {ember.remark = "not vectorised: its callback has results"}

// -----

func.func @f(%n: index, %x: memref<?xf32>, %y: memref<?xf32>, %z: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %lb = slc.to_stream %c0 : index to !slc.stream<index>
  %ub = slc.to_stream %n : index to !slc.stream<index>
  %st = slc.to_stream %c1 : index to !slc.stream<index>
  slc.for %i = %lb to %ub step %st : !slc.stream<index> -> !slc.stream<index> {
    %v = slc.mem_stream %x[%i] : memref<?xf32>[!slc.stream<index>] into !slc.stream<f32>
    slc.callback {
      %k = slc.from_stream %i : !slc.stream<index> to index
      %h = slc.from_stream %v : !slc.stream<f32> to f32
      memref.store %h, %y[%k] : memref<?xf32>
      memref.store %h, %z[%k] : memref<?xf32>
    }
  }
  func.return
}
// CHECK: {ember.remark = "not vectorised: stored memref %y may overlap %z"}

// -----

func.func @f(%n: index, %x: memref<?xf32>, %t: memref<?x?xf32>, %y: memref<?xf32>, %z: memref<?xindex>) attributes {ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<?xf32>
    memref.store %i, %z[%i] : memref<?xindex>
  }
  func.return
}
// CHECK: {ember.remark = "not vectorised: a store writes the induction variable"}

// -----

// The second callback would read what later iterations of the first one store.
func.func @f(%n: index, %x: memref<?xf32>, %y: memref<?xf32>, %z: memref<?xf32>) attributes {ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = slc.to_stream %c0 : index to !slc.stream<index>
  %1 = slc.to_stream %n : index to !slc.stream<index>
  %2 = slc.to_stream %c1 : index to !slc.stream<index>
  slc.for %i = %0 to %1 step %2 : !slc.stream<index> -> !slc.stream<index> {
    %v = slc.mem_stream %x[%i] : memref<?xf32>[!slc.stream<index>] into !slc.stream<f32>
    slc.callback {
      %j = slc.from_stream %i : !slc.stream<index> to index
      %w = slc.from_stream %v : !slc.stream<f32> to f32
      memref.store %w, %y[%j] : memref<?xf32>
    }
    slc.callback {
      %j = slc.from_stream %i : !slc.stream<index> to index
      %w = memref.load %y[%c1] : memref<?xf32>
      memref.store %w, %z[%j] : memref<?xf32>
    }
  }
  func.return
}
// CHECK: {ember.remark = "not vectorised: it has 2 callbacks"}
