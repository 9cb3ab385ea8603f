// RUN: %ember-opt -p 'split-siblings' %s | filecheck %s

// Each loop over columns gets a nest; the host counts the edges for the scratch vector between them.

func.func @fused(%off: memref<?xindex>, %idx: memref<?xindex>, %tab: memref<?x?xf32>, %out: memref<?x?xf32>, %N: index) attributes {ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant 0.0 : f32
  %D = memref.dim %tab, %c1 : memref<?x?xf32>
  scf.for %i = %c0 to %N step %c1 {
    %i1 = arith.addi %i, %c1 : index
    %s = memref.load %off[%i] : memref<?xindex>
    %e = memref.load %off[%i1] : memref<?xindex>
    scf.for %p = %s to %e step %c1 {
      %c = memref.load %idx[%p] : memref<?xindex>
      %dot = scf.for %d = %c0 to %D step %c1 iter_args(%acc = %f0) -> (f32) {
        %x = memref.load %tab[%i, %d] : memref<?x?xf32>
        %y = memref.load %tab[%c, %d] : memref<?x?xf32>
        %m = arith.mulf %x, %y : f32
        %n = arith.addf %acc, %m : f32
        scf.yield %n : f32
      }
      scf.for %d = %c0 to %D step %c1 {
        %y = memref.load %tab[%c, %d] : memref<?x?xf32>
        %a = memref.load %out[%i, %d] : memref<?x?xf32>
        %m = arith.mulf %dot, %y : f32
        %n = arith.addf %a, %m : f32
        memref.store %n, %out[%i, %d] : memref<?x?xf32>
      }
    }
  }
  func.return
}

// CHECK:          %count = scf.for %i = %c0 to %N step %c1 iter_args(%n = %c0) -> (index) {
// CHECK-NEXT:       %i1 = arith.addi %i, %c1 : index
// CHECK-NEXT:       %s = memref.load %off[%i] : memref<?xindex>
// CHECK-NEXT:       %e = memref.load %off[%i1] : memref<?xindex>
// CHECK-NEXT:       %0 = scf.for %p = %s to %e step %c1 iter_args(%n_1 = %n) -> (index) {
// CHECK-NEXT:         %1 = arith.addi %n_1, %c1 : index
// CHECK-NEXT:         scf.yield %1 : index
// CHECK-NEXT:       }
// CHECK-NEXT:       scf.yield %0 : index
// CHECK-NEXT:     } {ember.host}
// CHECK-NEXT:     %scratch = memref.alloc(%count) : memref<?xf32>
// CHECK-NEXT:     %2 = scf.for %i_1 = %c0 to %N step %c1 iter_args(%n_2 = %c0) -> (index) {
// CHECK-NEXT:       %i1_1 = arith.addi %i_1, %c1 : index
// CHECK-NEXT:       %s_1 = memref.load %off[%i_1] : memref<?xindex>
// CHECK-NEXT:       %e_1 = memref.load %off[%i1_1] : memref<?xindex>
// CHECK-NEXT:       %3 = scf.for %p_1 = %s_1 to %e_1 step %c1 iter_args(%n_3 = %n_2) -> (index) {
// CHECK-NEXT:         %c = memref.load %idx[%p_1] : memref<?xindex>
// CHECK-NEXT:         %dot = scf.for %d = %c0 to %D step %c1 iter_args(%acc = %f0) -> (f32) {
// CHECK-NEXT:           %x = memref.load %tab[%i_1, %d] : memref<?x?xf32>
// CHECK-NEXT:           %y = memref.load %tab[%c, %d] : memref<?x?xf32>
// CHECK-NEXT:           %m = arith.mulf %x, %y : f32
// CHECK-NEXT:           %n_4 = arith.addf %acc, %m : f32
// CHECK-NEXT:           scf.yield %n_4 : f32
// CHECK-NEXT:         }
// CHECK-NEXT:         memref.store %dot, %scratch[%n_3] : memref<?xf32>
// CHECK-NEXT:         %4 = arith.addi %n_3, %c1 : index
// CHECK-NEXT:         scf.yield %4 : index
// CHECK-NEXT:       }
// CHECK-NEXT:       scf.yield %3 : index
// CHECK-NEXT:     }
// CHECK-NEXT:     %5 = scf.for %i_2 = %c0 to %N step %c1 iter_args(%n_5 = %c0) -> (index) {
// CHECK-NEXT:       %i1_2 = arith.addi %i_2, %c1 : index
// CHECK-NEXT:       %s_2 = memref.load %off[%i_2] : memref<?xindex>
// CHECK-NEXT:       %e_2 = memref.load %off[%i1_2] : memref<?xindex>
// CHECK-NEXT:       %6 = scf.for %p_2 = %s_2 to %e_2 step %c1 iter_args(%n_6 = %n_5) -> (index) {
// CHECK-NEXT:         %c_1 = memref.load %idx[%p_2] : memref<?xindex>
// CHECK-NEXT:         %dot_1 = memref.load %scratch[%n_6] : memref<?xf32>
// CHECK-NEXT:         %7 = arith.addi %n_6, %c1 : index
// CHECK-NEXT:         scf.for %d_1 = %c0 to %D step %c1 {
// CHECK-NEXT:           %y_1 = memref.load %tab[%c_1, %d_1] : memref<?x?xf32>
// CHECK-NEXT:           %a = memref.load %out[%i_2, %d_1] : memref<?x?xf32>
// CHECK-NEXT:           %m_1 = arith.mulf %dot_1, %y_1 : f32
// CHECK-NEXT:           %n_7 = arith.addf %a, %m_1 : f32
// CHECK-NEXT:           memref.store %n_7, %out[%i_2, %d_1] : memref<?x?xf32>
// CHECK-NEXT:         }
// CHECK-NEXT:         scf.yield %7 : index
// CHECK-NEXT:       }
// CHECK-NEXT:       scf.yield %6 : index
// CHECK-NEXT:     }
// CHECK-NEXT:     func.return
