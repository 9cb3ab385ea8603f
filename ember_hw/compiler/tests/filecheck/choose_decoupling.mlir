// RUN: %ember-opt -p 'choose-decoupling' %s | filecheck %s

// The slice of a bag maximum; the loop that fills empty bags stays execute-side code.

func.func @eb_max(%off: memref<?xindex>, %idx: memref<?xi64>, %psw: memref<?xf32>, %tab: memref<?x?xf32>, %out: memref<?x?xf32>, %B: index) attributes {ember.args = ["off", "idx", "psw", "tab", "out", "B"], ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant 0.000000e+00 : f32
  %D = memref.dim %tab, %c1 : memref<?x?xf32>
  scf.for %b = %c0 to %B step %c1 {
    %b1 = arith.addi %b, %c1 : index
    %s = memref.load %off[%b] : memref<?xindex>
    %e = memref.load %off[%b1] : memref<?xindex>
    scf.for %j = %s to %e step %c1 {
      %i = memref.load %idx[%j] : memref<?xi64>
      %r = arith.index_cast %i : i64 to index
      scf.for %d = %c0 to %D step %c1 {
        %v = memref.load %tab[%r, %d] : memref<?x?xf32>
        %a = memref.load %out[%b, %d] : memref<?x?xf32>
        %n = arith.maximumf %a, %v : f32
        memref.store %n, %out[%b, %d] : memref<?x?xf32>
      }
    }
    %empty = arith.cmpi eq, %s, %e : index
    scf.if %empty {
      scf.for %d_1 = %c0 to %D step %c1 {
        memref.store %f0, %out[%b, %d_1] : memref<?x?xf32>
      }
    }
  }
  func.return
}

// CHECK:      func.func @eb_max(%off: memref<?xindex>, %idx: memref<?xi64>, %psw: memref<?xf32>, %tab: memref<?x?xf32>, %out: memref<?x?xf32>, %B: index) attributes {ember.args = ["off", "idx", "psw", "tab", "out", "B"], ember.noalias} {
// CHECK-NEXT:   %c0 = arith.constant 0 : index
// CHECK-NEXT:   %c1 = arith.constant 1 : index
// CHECK-NEXT:   %f0 = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:   %D = memref.dim %tab, %c1 : memref<?x?xf32>
// CHECK-NEXT:   scf.for %b = %c0 to %B step %c1 {
// CHECK-NEXT:     %b1 = arith.addi %b, %c1 : index
// CHECK-NEXT:     %s = memref.load %off[%b] : memref<?xindex>
// CHECK-NEXT:     %e = memref.load %off[%b1] : memref<?xindex>
// CHECK-NEXT:     scf.for %j = %s to %e step %c1 {
// CHECK-NEXT:       %i = memref.load %idx[%j] : memref<?xi64>
// CHECK-NEXT:       %r = arith.index_cast %i : i64 to index
// CHECK-NEXT:       scf.for %d = %c0 to %D step %c1 {
// CHECK-NEXT:         %v = memref.load %tab[%r, %d] : memref<?x?xf32>
// CHECK-NEXT:         slc.callback {
// CHECK-NEXT:           %a = memref.load %out[%b, %d] : memref<?x?xf32>
// CHECK-NEXT:           %n = arith.maximumf %a, %v : f32
// CHECK-NEXT:           memref.store %n, %out[%b, %d] : memref<?x?xf32>
// CHECK-NEXT:           slc.yield
// CHECK-NEXT:         }
// CHECK-NEXT:       } {ember.offload}
// CHECK-NEXT:     } {ember.offload}
// CHECK-NEXT:     slc.callback {
// CHECK-NEXT:       %empty = arith.cmpi eq, %s, %e : index
// CHECK-NEXT:       scf.if %empty {
// CHECK-NEXT:         scf.for %d_1 = %c0 to %D step %c1 {
// CHECK-NEXT:           memref.store %f0, %out[%b, %d_1] : memref<?x?xf32>
// CHECK-NEXT:         }
// CHECK-NEXT:       }
// CHECK-NEXT:       slc.yield
// CHECK-NEXT:     }
// CHECK-NEXT:   } {ember.offload}
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
