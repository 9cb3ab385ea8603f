// RUN: %ember-opt --split-input-file --verify-diagnostics -p scf-to-slc %s | filecheck %s

// Every message of scf-to-slc.

func.func @unmarked(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
  }
  func.return
}
// CHECK: error: loop outside a callback must be marked 'ember.offload', not unmarked (op 'scf.for' in function 'unmarked')

// -----

func.func @leftover(%n: index, %m: memref<?xf32>, %f: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    memref.store %f, %m[%i] : memref<?xf32>
  } {ember.offload}
  func.return
}
// CHECK: error: op outside a callback must be a load, index arithmetic, an index cast, a marked loop or an slc.callback, not 'memref.store' (op 'memref.store' in function 'leftover')

// -----

func.func @execute_value(%n: index, %m: memref<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%k = %c0) -> (index) {
    %v = memref.load %m[%k] : memref<?xf32>
    scf.yield %k : index
  } {ember.offload}
  func.return
}
// CHECK: error: operand %k of the access slice must be a stream or a host value, not an execute value (op 'memref.load' in function 'execute_value')
