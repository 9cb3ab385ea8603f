// RUN: %ember-opt -p flatten-views %s | filecheck %s

// What is written goes to the vector behind the view; what the access unit reads keeps the view.

!V = memref<?xf32>
!W = memref<?x?xf32, strided<[?, 1], offset: ?>>
func.func @f(%at: memref<?xindex>, %idx: memref<?xindex>, %m: !V, %o: !V, %n: index, %d: index) attributes {ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %t = %c0 to %n step %c1 {
    %b = memref.load %at[%t] : memref<?xindex>
    %in = memref.reinterpret_cast %m to offset: [%b], sizes: [%n, %d], strides: [%d, 1] : !V to !W
    %out = memref.reinterpret_cast %o to offset: [%b], sizes: [%n, %d], strides: [%d, 1] : !V to !W
    scf.for %i = %c0 to %n step %c1 {
      %r = memref.load %idx[%i] : memref<?xindex>
      scf.for %k = %c0 to %d step %c1 {
        %v = memref.load %in[%r, %k] : !W
        %a = memref.load %out[%i, %k] : !W
        %s = arith.addf %a, %v : f32
        memref.store %s, %out[%i, %k] : !W
      }
    }
  }
  func.return
}
// CHECK:          %in = memref.reinterpret_cast %m to offset: [%b]
// CHECK-NOT:      reinterpret_cast %o
// CHECK:          scf.for %i
// CHECK-NEXT:       %r = memref.load %idx[%i]
// CHECK-NEXT:       %0 = arith.muli %i, %d : index
// CHECK-NEXT:       %row = arith.addi %b, %0 : index
// CHECK:            scf.for %k
// CHECK-NEXT:         %v = memref.load %in[%r, %k]
// CHECK-NEXT:         %1 = arith.addi %row, %k {ember.execute} : index
// CHECK-NEXT:         %a = memref.load %o[%1] : memref<?xf32>
// CHECK-NEXT:         %s = arith.addf %a, %v : f32
// CHECK-NEXT:         memref.store %s, %o[%1] : memref<?xf32>
