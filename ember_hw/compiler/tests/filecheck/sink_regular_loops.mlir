// RUN: %ember-opt -p 'choose-decoupling,scf-to-slc,slc-vectorizer{vector-length=4},simplify-casts,callback-vectorizer,simplify-mem-ops,buffer-compound-types,sink-regular-loops' %s | filecheck %s
// RUN: %ember-opt -p 'choose-decoupling,scf-to-slc,slc-vectorizer{vector-length=4},simplify-casts,callback-vectorizer,simplify-mem-ops,buffer-compound-types,sink-regular-loops{stay=0}' %s | filecheck %s --check-prefix=STAY

// The row of a key is sent once for all queries of its block; the execute side loads these itself.
// Where its nest stays, both rows come in each iteration.

func.func @kernel(%q: memref<?x?xf32>, %tab: memref<?x?xf32>, %blk: memref<?x?xindex>, %out: memref<?x?xf32>, %NB: index, %NS: index, %BS: index) attributes {ember.args = ["q", "tab", "blk", "out", "NB", "NS", "BS"], ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant 0.0 : f32
  %D = memref.dim %tab, %c1 : memref<?x?xf32>
  scf.for %qb = %c0 to %NB step %c1 {
    %q0 = arith.muli %qb, %BS : index
    scf.for %s = %c0 to %NS step %c1 {
      %kb = memref.load %blk[%qb, %s] : memref<?x?xindex>
      %k0 = arith.muli %kb, %BS : index
      %s0 = arith.muli %s, %BS : index
      scf.for %kk = %c0 to %BS step %c1 {
        %kr = arith.addi %k0, %kk : index
        %col = arith.addi %s0, %kk : index
        scf.for %qi = %c0 to %BS step %c1 {
          %qr = arith.addi %q0, %qi : index
          %dot = scf.for %d = %c0 to %D step %c1 iter_args(%acc = %f0) -> (f32) {
            %x = memref.load %tab[%kr, %d] : memref<?x?xf32>
            %y = memref.load %q[%qr, %d] : memref<?x?xf32>
            %m = arith.mulf %x, %y : f32
            %n = arith.addf %acc, %m : f32
            scf.yield %n : f32
          }
          memref.store %dot, %out[%qr, %col] : memref<?x?xf32>
        }
      }
    }
  }
  func.return
}

// CHECK:          slc.for %qb = %c0 to %NB step %c1 : index -> !slc.stream<index> {
// CHECK-NEXT:       %q0 = slc.alu_stream<mul> %qb, %BS : !slc.stream<index>, index -> !slc.stream<index>
// CHECK-NEXT:       slc.for %s = %c0 to %NS step %c1 : index -> !slc.stream<index> {
// CHECK-NEXT:         %kb = slc.mem_stream %blk[%qb, %s] : memref<?x?xindex>[!slc.stream<index>, !slc.stream<index>] into !slc.stream<index>
// CHECK-NEXT:         %k0 = slc.alu_stream<mul> %kb, %BS : !slc.stream<index>, index -> !slc.stream<index>
// CHECK-NEXT:         %s0 = slc.alu_stream<mul> %s, %BS : !slc.stream<index>, index -> !slc.stream<index>
// CHECK-NEXT:         slc.for %kk = %c0 to %BS step %c1 : index -> !slc.stream<index> {
// CHECK-NEXT:           %kr = slc.alu_stream<add> %k0, %kk : !slc.stream<index>, !slc.stream<index> -> !slc.stream<index>
// CHECK-NEXT:           %col = slc.alu_stream<add> %s0, %kk : !slc.stream<index>, !slc.stream<index> -> !slc.stream<index>
// CHECK-NEXT:           %row = slcvec.buf_stream : !slc.stream<memref<?xf32>>
// CHECK-NEXT:           slcvec.for<4>(%d xx %mask) = %c0 to %D step %c4 mask %all : (index xx vector<4xi1>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
// CHECK-NEXT:             %x = slcvec.mem_stream %tab[%kr, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>] into !slc.stream<vector<4xf32>>
// CHECK-NEXT:             slcvec.to_buffer %x, %row[%d] : !slc.stream<vector<4xf32>> -> !slc.stream<memref<?xf32>>[!slc.stream<vector<4xindex>>]
// CHECK-NEXT:             slcvec.yield
// CHECK-NEXT:           } {loopConfig = #slcvec<loop_config bcast>}
// CHECK-NEXT:           slc.callback {
// CHECK-NEXT:             %row_1 = slc.from_stream %row : !slc.stream<memref<?xf32>> to memref<?xf32>
// CHECK-NEXT:             %q0_1 = slc.from_stream %q0 : !slc.stream<index> to index
// CHECK-NEXT:             %col_1 = slc.from_stream %col : !slc.stream<index> to index
// CHECK-NEXT:             scf.for %qi = %c0 to %BS step %c1 {
// CHECK-NEXT:               %qr = arith.addi %q0_1, %qi : index
// CHECK-NEXT:               %dot = scf.for %d_1 = %c0 to %D step %c4 iter_args(%acc = %f0) -> (f32) {
// CHECK-NEXT:                 %x_1 = slcvec.from_buffer %row_1[%d_1] : memref<?xf32>[index] -> vector<4xf32>
// CHECK-NEXT:                 %mask_1 = slcvec.mask %d_1 %c0 %D %c1 : vector<4xi1>
// CHECK-NEXT:                 %y = vector.maskedload %q[%qr, %d_1], %mask_1, %zeros : memref<?x?xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
// CHECK-NEXT:                 %m = arith.mulf %x_1, %y : vector<4xf32>
// CHECK-NEXT:                 %n = slcvec.fold<add> %acc, %m mask %mask_1 : f32, vector<4xf32>, vector<4xi1>
// CHECK-NEXT:                 scf.yield %n : f32
// CHECK-NEXT:               }
// CHECK-NEXT:               memref.store %dot, %out[%qr, %col_1] : memref<?x?xf32>
// CHECK-NEXT:             }
// CHECK-NEXT:             slc.yield
// CHECK-NEXT:           }
// CHECK-NEXT:           slc.yield
// CHECK-NEXT:         }
// CHECK-NEXT:         slc.yield
// CHECK-NEXT:       }
// CHECK-NEXT:       slc.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     func.return

// STAY:          slc.for %qi = %c0 to %BS step %c1 : index -> !slc.stream<index> {
// STAY:            %x = slcvec.mem_stream %tab[%kr, %d]
// STAY:            %y = slcvec.mem_stream %q[%qr, %d]
// STAY:            slc.callback {
// STAY-NOT:          vector.maskedload
// STAY:              memref.store %dot, %out[%qr_1, %col_1] : memref<?x?xf32>
