// RUN: %ember-opt -p 'divide-nests' %s | filecheck %s
// RUN: %ember-opt -p 'divide-nests{nests=1}' %s | filecheck %s --check-prefix=SECOND

// Each loop over columns gets a nest; the scalar lies at the number of its edge, as off never falls.

func.func @fused(%off: memref<?xi32>, %idx: memref<?xindex>, %tab: memref<?x?xf32>, %out: memref<?x?xf32>, %N: index) attributes {ember.args = ["off", "idx", "tab", "out", "N"], ember.noalias, ember.rising = ["off"]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant 0.0 : f32
  %D = memref.dim %tab, %c1 : memref<?x?xf32>
  scf.for %i = %c0 to %N step %c1 {
    %i1 = arith.addi %i, %c1 : index
    %s32 = memref.load %off[%i] : memref<?xi32>
    %s = arith.index_cast %s32 : i32 to index
    %e32 = memref.load %off[%i1] : memref<?xi32>
    %e = arith.index_cast %e32 : i32 to index
    scf.for %p = %s to %e step %c1 {
      %c = memref.load %idx[%p] : memref<?xindex>
      %dot = scf.for %d = %c0 to %D step %c1 iter_args(%acc = %f0) -> (f32) {
        %x = memref.load %tab[%i, %d] : memref<?x?xf32>
        %y = memref.load %tab[%c, %d] : memref<?x?xf32>
        %m = arith.mulf %x, %y : f32
        %n = arith.addf %acc, %m : f32
        scf.yield %n : f32
      }
      %w = math.exp %dot : f32
      scf.for %d = %c0 to %D step %c1 {
        %y = memref.load %tab[%c, %d] : memref<?x?xf32>
        %a = memref.load %out[%i, %d] : memref<?x?xf32>
        %m = arith.mulf %w, %y : f32
        %n = arith.addf %a, %m : f32
        memref.store %n, %out[%i, %d] : memref<?x?xf32>
      }
    }
  }
  func.return
}

// CHECK-LABEL: @fused
// CHECK:          %places = memref.dim %idx, %c0 : memref<?xindex>
// CHECK-NEXT:     %scratch = memref.alloc(%places) : memref<?xf32>
// CHECK-NEXT:     scf.for %i = %c0 to %N step %c1 {
// CHECK:            scf.for %p = %s to %e step %c1 {
// CHECK-NEXT:         %c = memref.load %idx[%p] : memref<?xindex>
// CHECK-NEXT:         %dot = scf.for
// CHECK:              %w = math.exp %dot : f32
// CHECK-NEXT:         memref.store %w, %scratch[%p] : memref<?xf32>
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:     scf.for %i_1 = %c0 to %N step %c1 {
// CHECK:            scf.for %p_1 = %s_1 to %e_1 step %c1 {
// CHECK-NEXT:         %c_1 = memref.load %idx[%p_1] : memref<?xindex>
// CHECK-NEXT:         %w_1 = memref.load %scratch[%p_1] : memref<?xf32>
// CHECK-NEXT:         scf.for
// CHECK-NOT:          math.exp
// CHECK:              memref.store %{{.*}}, %out[%i_1, %{{.*}}] : memref<?x?xf32>

// SECOND-LABEL: @fused
// SECOND-NOT:     memref.alloc

// Loops of the host's bounds are dimensions; a nest that can't be divided says why.

func.func @pairs(%rows: memref<?xindex>, %x: memref<?x?xf32>, %y: memref<?x?xf32>, %out: memref<?x?xf32>, %both: memref<?xf32>, %N: index, %M: index) attributes {ember.args = ["rows", "x", "y", "out", "both", "N", "M"], ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant 0.0 : f32
  %D = memref.dim %x, %c1 : memref<?x?xf32>
  scf.for %i = %c0 to %N step %c1 {
    %r = memref.load %rows[%i] : memref<?xindex>
    scf.for %d = %c0 to %D step %c1 {
      %v = memref.load %x[%r, %d] : memref<?x?xf32>
      memref.store %v, %both[%d] : memref<?xf32>
    }
    scf.for %d = %c0 to %D step %c1 {
      %v = memref.load %y[%r, %d] : memref<?x?xf32>
      memref.store %v, %both[%d] : memref<?xf32>
    }
  }
  scf.for %i = %c0 to %N step %c1 {
    %r = memref.load %rows[%i] : memref<?xindex>
    scf.for %j = %c0 to %M step %c1 {
      %dot = scf.for %d = %c0 to %D step %c1 iter_args(%acc = %f0) -> (f32) {
        %u = memref.load %x[%r, %d] : memref<?x?xf32>
        %v = memref.load %y[%j, %d] : memref<?x?xf32>
        %m = arith.mulf %u, %v : f32
        %n = arith.addf %acc, %m : f32
        scf.yield %n : f32
      }
      scf.for %d = %c0 to %D step %c1 {
        %v = memref.load %y[%j, %d] : memref<?x?xf32>
        %a = memref.load %out[%i, %d] : memref<?x?xf32>
        %m = arith.mulf %dot, %v : f32
        %n = arith.addf %a, %m : f32
        memref.store %n, %out[%i, %d] : memref<?x?xf32>
      }
    }
  }
  func.return
}

// CHECK-LABEL: @pairs
// CHECK:          } {ember.remark = "not divided: both halves touch %both"}
// CHECK-NEXT:     %scratch = memref.alloc(%N, %M) : memref<?x?xf32>
// CHECK:              memref.store %dot, %scratch[%i_1, %j] : memref<?x?xf32>
// CHECK:              %dot_1 = memref.load %scratch[%i_2, %j_1] : memref<?x?xf32>

// SECOND-LABEL: @pairs
// SECOND-NOT:     ember.remark
// SECOND:         memref.alloc(%N, %M) : memref<?x?xf32>
