// RUN: %ember-opt --split-input-file --verify-diagnostics -p choose-decoupling %s | filecheck %s

// Every message of choose-decoupling.

func.func @many(%n: index) {
  func.return
^next:
  func.return
}
// CHECK: error: function 'many' must be one block, not 2 blocks (op 'func.func' in function 'many')

// -----

func.func @call(%n: index, %m: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    func.call @other(%i) : (index) -> ()
  }
  func.return
}
func.func private @other(index) -> ()
// CHECK: error: op of a loop nest must be an scf.for, scf.if, arith, math or memref op, not 'func.call' (op 'func.call' in function 'call')

// -----

// Without the attribute the two arguments may be one memory.
func.func @alias(%n: index, %x: memref<?xf32>, %y: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<?xf32>
    memref.store %v, %y[%i] : memref<?xf32>
  }
  func.return
}
// CHECK: error: memref %x read by the access unit must be known not to overlap the stored %y (function attribute 'ember.noalias'), not possibly the same memory (op 'memref.load' in function 'alias')

// -----

// Two views of one memory overlap, whatever the attribute says.
func.func @views(%n: index, %x: memref<?xf32>) attributes {ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %y = "memref.cast"(%x) : (memref<?xf32>) -> memref<?xf32>
  scf.for %i = %c0 to %n step %c1 {
    %v = memref.load %x[%i] : memref<?xf32>
    memref.store %v, %y[%i] : memref<?xf32>
  }
  func.return
}
// CHECK: error: top-level loop must be one whose bounds, step and at least one load the access unit can compute, not the loop of %i (op 'scf.for' in function 'views')

// -----

func.func @step(%n: index, %st: index, %x: memref<?xf32>, %y: memref<?xf32>) attributes {ember.noalias} {
  %c0 = arith.constant 0 : index
  scf.for %i = %c0 to %n step %st {
    %v = memref.load %x[%i] : memref<?xf32>
    memref.store %v, %y[%i] : memref<?xf32>
  }
  func.return
}
// CHECK: error: top-level loop must be one whose bounds, step and at least one load the access unit can compute, not the loop of %i (op 'scf.for' in function 'step')
