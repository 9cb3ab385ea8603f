// RUN: %ember-opt -p 'choose-decoupling,scf-to-slc,assign-variables' %s | filecheck %s

// A reduction whose result the loop beside it reads in every iteration: its variable starts anew in a
// callback in front of its loop, as no reader is the last one of them all.

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

// CHECK:          dlc.set_var %f0 : f32
// CHECK-NEXT:     slc.for %i = %0 to %1 step %2 : !slc.stream<index> -> !slc.stream<index> {
// CHECK-NEXT:       %i1 = slc.alu_stream<add> %i, %2 : !slc.stream<index>, !slc.stream<index> -> !slc.stream<index>
// CHECK-NEXT:       %s = slc.mem_stream %off[%i] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
// CHECK-NEXT:       %e = slc.mem_stream %off[%i1] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
// CHECK-NEXT:       slc.for %p = %s to %e step %2 : !slc.stream<index> -> !slc.stream<index> {
// CHECK-NEXT:         %c = slc.mem_stream %idx[%p] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
// CHECK-NEXT:         slc.callback {
// CHECK-NEXT:           dlc.set_var %f0 : f32
// CHECK-NEXT:           slc.yield
// CHECK-NEXT:         }
// CHECK-NEXT:         slc.for %d = %0 to %3 step %2 : !slc.stream<index> -> !slc.stream<index> {
// CHECK-NEXT:           %x = slc.mem_stream %tab[%i, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<index>] into !slc.stream<f32>
// CHECK-NEXT:           %y = slc.mem_stream %tab[%c, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<index>] into !slc.stream<f32>
// CHECK-NEXT:           slc.callback {
// CHECK-NEXT:             %x_1 = slc.from_stream %x : !slc.stream<f32> to f32
// CHECK-NEXT:             %y_1 = slc.from_stream %y : !slc.stream<f32> to f32
// CHECK-NEXT:             %acc = dlc.get_var : f32
// CHECK-NEXT:             %m = arith.mulf %x_1, %y_1 : f32
// CHECK-NEXT:             %n = arith.addf %acc, %m : f32
// CHECK-NEXT:             dlc.set_var %n : f32
// CHECK-NEXT:             slc.yield
// CHECK-NEXT:           }
// CHECK-NEXT:           slc.yield
// CHECK-NEXT:         }
// CHECK-NEXT:         slc.for %d_1 = %0 to %3 step %2 : !slc.stream<index> -> !slc.stream<index> {
// CHECK-NEXT:           %y_2 = slc.mem_stream %tab[%c, %d_1] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<index>] into !slc.stream<f32>
// CHECK-NEXT:           slc.callback {
// CHECK-NEXT:             %i_1 = slc.from_stream %i : !slc.stream<index> to index
// CHECK-NEXT:             %d_2 = slc.from_stream %d_1 : !slc.stream<index> to index
// CHECK-NEXT:             %y_3 = slc.from_stream %y_2 : !slc.stream<f32> to f32
// CHECK-NEXT:             %dot = dlc.get_var : f32
// CHECK-NEXT:             %a = memref.load %out[%i_1, %d_2] : memref<?x?xf32>
// CHECK-NEXT:             %m_1 = arith.mulf %dot, %y_3 : f32
// CHECK-NEXT:             %n_1 = arith.addf %a, %m_1 : f32
// CHECK-NEXT:             memref.store %n_1, %out[%i_1, %d_2] : memref<?x?xf32>
// CHECK-NEXT:             slc.yield
// CHECK-NEXT:           }
// CHECK-NEXT:           slc.yield
// CHECK-NEXT:         }
// CHECK-NEXT:         slc.yield
// CHECK-NEXT:       }
// CHECK-NEXT:       slc.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     func.return
