// RUN: %ember-opt -p 'choose-decoupling,scf-to-slc,slc-vectorizer{vector-length=4},simplify-casts,callback-vectorizer,simplify-mem-ops,buffer-compound-types,keep-invariant-rows' %s | filecheck %s

// The row of a node is sent in front of the loop over its neighbours.

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

// CHECK:          slc.for %i = %c0 to %N step %c1 : index -> !slc.stream<index> {
// CHECK-NEXT:       %i1 = slc.alu_stream<add> %i, %c1 : !slc.stream<index>, index -> !slc.stream<index>
// CHECK-NEXT:       %s = slc.mem_stream %off[%i] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
// CHECK-NEXT:       %e = slc.mem_stream %off[%i1] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
// CHECK-NEXT:       %row = slcvec.buf_stream : !slc.stream<memref<?xf32>>
// CHECK-NEXT:       slcvec.for<4>(%d xx %mask) = %c0 to %D step %c4 mask %all : (index xx vector<4xi1>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
// CHECK-NEXT:         %x = slcvec.mem_stream %tab[%i, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>] into !slc.stream<vector<4xf32>>
// CHECK-NEXT:         slcvec.to_buffer %x, %row[%d] : !slc.stream<vector<4xf32>> -> !slc.stream<memref<?xf32>>[!slc.stream<vector<4xindex>>]
// CHECK-NEXT:         slcvec.yield
// CHECK-NEXT:       } {loopConfig = #slcvec<loop_config bcast>}
// CHECK-NEXT:       %row_1 = slc.callback {
// CHECK-NEXT:         %row_2 = slc.from_stream %row : !slc.stream<memref<?xf32>> to memref<?xf32>
// CHECK-NEXT:         slc.yield %row_2 : memref<?xf32>
// CHECK-NEXT:       } : memref<?xf32>
// CHECK-NEXT:       slc.for %p = %s to %e step %0 : !slc.stream<index> -> !slc.stream<index> {
// CHECK-NEXT:         %c = slc.mem_stream %idx[%p] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
// CHECK-NEXT:         %row_3 = slcvec.buf_stream : !slc.stream<memref<?xf32>>
// CHECK-NEXT:         slcvec.for<4>(%d_1 xx %mask_1) = %c0 to %D step %c4 mask %all : (index xx vector<4xi1>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
// CHECK-NEXT:           %y = slcvec.mem_stream %tab[%c, %d_1] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>] into !slc.stream<vector<4xf32>>
// CHECK-NEXT:           slcvec.to_buffer %y, %row_3[%d_1] : !slc.stream<vector<4xf32>> -> !slc.stream<memref<?xf32>>[!slc.stream<vector<4xindex>>]
// CHECK-NEXT:           slcvec.yield
// CHECK-NEXT:         } {loopConfig = #slcvec<loop_config bcast>}
// CHECK-NEXT:         slc.callback {
// CHECK-NEXT:           %row_4 = slc.from_stream %row_3 : !slc.stream<memref<?xf32>> to memref<?xf32>
// CHECK-NEXT:           %i_1 = slc.from_stream %i : !slc.stream<index> to index
// CHECK-NEXT:           %dot = scf.for %d_2 = %c0 to %D step %c4 iter_args(%acc = %f0) -> (f32) {
// CHECK-NEXT:             %x_1 = slcvec.from_buffer %row_1[%d_2] : memref<?xf32>[index] -> vector<4xf32>
// CHECK-NEXT:             %y_1 = slcvec.from_buffer %row_4[%d_2] : memref<?xf32>[index] -> vector<4xf32>
// CHECK-NEXT:             %mask_2 = slcvec.mask %d_2 %c0 %D %c1 : vector<4xi1>
// CHECK-NEXT:             %m = arith.mulf %x_1, %y_1 : vector<4xf32>
// CHECK-NEXT:             %n = slcvec.fold<add> %acc, %m mask %mask_2 : f32, vector<4xf32>, vector<4xi1>
// CHECK-NEXT:             scf.yield %n : f32
// CHECK-NEXT:           }
// CHECK-NEXT:           scf.for %d_3 = %c0 to %D step %c4 {
// CHECK-NEXT:             %y_2 = slcvec.from_buffer %row_4[%d_3] : memref<?xf32>[index] -> vector<4xf32>
// CHECK-NEXT:             %mask_3 = slcvec.mask %d_3 %c0 %D %c1 : vector<4xi1>
// CHECK-NEXT:             %a = vector.maskedload %out[%i_1, %d_3], %mask_3, %zeros : memref<?x?xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
// CHECK-NEXT:             %dot_1 = vector.broadcast %dot : f32 to vector<4xf32>
// CHECK-NEXT:             %m_1 = arith.mulf %dot_1, %y_2 : vector<4xf32>
// CHECK-NEXT:             %n_1 = arith.addf %a, %m_1 : vector<4xf32>
// CHECK-NEXT:             vector.maskedstore %out[%i_1, %d_3], %mask_3, %n_1 : memref<?x?xf32>, vector<4xi1>, vector<4xf32>
// CHECK-NEXT:           }
// CHECK-NEXT:           slc.yield
// CHECK-NEXT:         }
// CHECK-NEXT:         slc.yield
// CHECK-NEXT:       }
// CHECK-NEXT:       slc.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     func.return
