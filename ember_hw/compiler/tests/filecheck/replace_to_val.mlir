// RUN: %ember-opt -p 'replace-to-val' %s | filecheck %s

// Two counters, the inner one set back.

func.func @eb_multi(%off: memref<?xindex>, %idx: memref<?xindex>, %psw: memref<?xf32>, %tb: memref<?xindex>, %tab: memref<?x?xf32>, %out: memref<?x?xf32>, %NT: index, %B: index) attributes {ember.args = ["off", "idx", "psw", "tb", "tab", "out", "NT", "B"], ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant 0.000000e+00 : f32
  %c4 = arith.constant 4 : index
  %all = arith.constant dense<true> : vector<4xi1>
  %zeros = arith.constant dense<0.000000e+00> : vector<4xf32>
  %D = memref.dim %tab, %c1 : memref<?x?xf32>
  %0 = slc.to_stream %c1 : index to !slc.stream<index>
  slc.for %t = %c0 to %NT step %c1 : index -> !slc.stream<index> {
    %base = slc.mem_stream %tb[%t] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
    %tB = slc.alu_stream<mul> %t, %B : !slc.stream<index>, index -> !slc.stream<index>
    slc.for %b = %c0 to %B step %c1 : index -> !slc.stream<index> {
      %g = slc.alu_stream<add> %tB, %b : !slc.stream<index>, !slc.stream<index> -> !slc.stream<index>
      %g1 = slc.alu_stream<add> %g, %c1 : !slc.stream<index>, index -> !slc.stream<index>
      %s = slc.mem_stream %off[%g] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
      %e = slc.mem_stream %off[%g1] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
      slc.for %j = %s to %e step %0 : !slc.stream<index> -> !slc.stream<index> {
        %i = slc.mem_stream %idx[%j] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
        %r = slc.alu_stream<add> %i, %base : !slc.stream<index>, !slc.stream<index> -> !slc.stream<index>
        %w = slc.mem_stream %psw[%j] : memref<?xf32>[!slc.stream<index>] into !slc.stream<f32>
        %row = slcvec.buf_stream : !slc.stream<memref<?xf32>>
        slcvec.for<4>(%d xx %mask) = %c0 to %D step %c4 mask %all : (index xx vector<4xi1>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
          %v = slcvec.mem_stream %tab[%r, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>] into !slc.stream<vector<4xf32>>
          slcvec.to_buffer %v, %row[%d] : !slc.stream<vector<4xf32>> -> !slc.stream<memref<?xf32>>[!slc.stream<vector<4xindex>>]
          slcvec.yield
        } {loopConfig = #slcvec<loop_config bcast>}
        slc.callback {
          %g_1 = slc.from_stream %g : !slc.stream<index> to index
          %w_1 = slc.from_stream %w : !slc.stream<f32> to f32
          %row_1 = slc.from_stream %row : !slc.stream<memref<?xf32>> to memref<?xf32>
          scf.for %d_1 = %c0 to %D step %c4 {
            %v_1 = slcvec.from_buffer %row_1[%d_1] : memref<?xf32>[index] -> vector<4xf32>
            %mask_1 = slcvec.mask %d_1 %c0 %D %c1 : vector<4xi1>
            %a = vector.maskedload %out[%g_1, %d_1], %mask_1, %zeros : memref<?x?xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
            %w_2 = vector.broadcast %w_1 : f32 to vector<4xf32>
            %p = arith.mulf %w_2, %v_1 : vector<4xf32>
            %n = arith.addf %a, %p : vector<4xf32>
            vector.maskedstore %out[%g_1, %d_1], %mask_1, %n : memref<?x?xf32>, vector<4xi1>, vector<4xf32>
          }
          slc.yield
        }
        slc.yield
      }
      slc.yield
    }
    slc.yield
  }
  func.return
}

// CHECK:      func.func @eb_multi(%off: memref<?xindex>, %idx: memref<?xindex>, %psw: memref<?xf32>, %tb: memref<?xindex>, %tab: memref<?x?xf32>, %out: memref<?x?xf32>, %NT: index, %B: index) attributes {ember.args = ["off", "idx", "psw", "tb", "tab", "out", "NT", "B"], ember.noalias} {
// CHECK-NEXT:   %c0 = arith.constant 0 : index
// CHECK-NEXT:   %c1 = arith.constant 1 : index
// CHECK-NEXT:   %f0 = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:   %c4 = arith.constant 4 : index
// CHECK-NEXT:   %all = arith.constant dense<true> : vector<4xi1>
// CHECK-NEXT:   %zeros = arith.constant dense<0.000000e+00> : vector<4xf32>
// CHECK-NEXT:   %D = memref.dim %tab, %c1 : memref<?x?xf32>
// CHECK-NEXT:   %0 = slc.to_stream %c1 : index to !slc.stream<index>
// CHECK-NEXT:   dlc.set_var %c0 : index
// CHECK-NEXT:   dlc.set_var %c0 {id = 1 : i64} : index
// CHECK-NEXT:   slc.for %t = %c0 to %NT step %c1 : index -> !slc.stream<index> {
// CHECK-NEXT:     %base = slc.mem_stream %tb[%t] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
// CHECK-NEXT:     %tB = slc.alu_stream<mul> %t, %B : !slc.stream<index>, index -> !slc.stream<index>
// CHECK-NEXT:     slc.for %b = %c0 to %B step %c1 : index -> !slc.stream<index> {
// CHECK-NEXT:       %g = slc.alu_stream<add> %tB, %b : !slc.stream<index>, !slc.stream<index> -> !slc.stream<index>
// CHECK-NEXT:       %g1 = slc.alu_stream<add> %g, %c1 : !slc.stream<index>, index -> !slc.stream<index>
// CHECK-NEXT:       %s = slc.mem_stream %off[%g] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
// CHECK-NEXT:       %e = slc.mem_stream %off[%g1] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
// CHECK-NEXT:       slc.for %j = %s to %e step %0 : !slc.stream<index> -> !slc.stream<index> {
// CHECK-NEXT:         %i = slc.mem_stream %idx[%j] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
// CHECK-NEXT:         %r = slc.alu_stream<add> %i, %base : !slc.stream<index>, !slc.stream<index> -> !slc.stream<index>
// CHECK-NEXT:         %w = slc.mem_stream %psw[%j] : memref<?xf32>[!slc.stream<index>] into !slc.stream<f32>
// CHECK-NEXT:         %row = slcvec.buf_stream : !slc.stream<memref<?xf32>>
// CHECK-NEXT:         slcvec.for<4>(%d xx %mask) = %c0 to %D step %c4 mask %all : (index xx vector<4xi1>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
// CHECK-NEXT:           %v = slcvec.mem_stream %tab[%r, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>] into !slc.stream<vector<4xf32>>
// CHECK-NEXT:           slcvec.to_buffer %v, %row[%d] : !slc.stream<vector<4xf32>> -> !slc.stream<memref<?xf32>>[!slc.stream<vector<4xindex>>]
// CHECK-NEXT:           slcvec.yield
// CHECK-NEXT:         } {loopConfig = #slcvec<loop_config bcast>}
// CHECK-NEXT:         slc.callback {
// CHECK-NEXT:           %t_1 = dlc.get_var : index
// CHECK-NEXT:           %tB_1 = arith.muli %t_1, %B : index
// CHECK-NEXT:           %b_1 = dlc.get_var {id = 1 : i64} : index
// CHECK-NEXT:           %g_1 = arith.addi %tB_1, %b_1 : index
// CHECK-NEXT:           %w_1 = slc.from_stream %w : !slc.stream<f32> to f32
// CHECK-NEXT:           %row_1 = slc.from_stream %row : !slc.stream<memref<?xf32>> to memref<?xf32>
// CHECK-NEXT:           scf.for %d_1 = %c0 to %D step %c4 {
// CHECK-NEXT:             %v_1 = slcvec.from_buffer %row_1[%d_1] : memref<?xf32>[index] -> vector<4xf32>
// CHECK-NEXT:             %mask_1 = slcvec.mask %d_1 %c0 %D %c1 : vector<4xi1>
// CHECK-NEXT:             %a = vector.maskedload %out[%g_1, %d_1], %mask_1, %zeros : memref<?x?xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
// CHECK-NEXT:             %w_2 = vector.broadcast %w_1 : f32 to vector<4xf32>
// CHECK-NEXT:             %p = arith.mulf %w_2, %v_1 : vector<4xf32>
// CHECK-NEXT:             %n = arith.addf %a, %p : vector<4xf32>
// CHECK-NEXT:             vector.maskedstore %out[%g_1, %d_1], %mask_1, %n : memref<?x?xf32>, vector<4xi1>, vector<4xf32>
// CHECK-NEXT:           }
// CHECK-NEXT:           slc.yield
// CHECK-NEXT:         }
// CHECK-NEXT:         slc.yield
// CHECK-NEXT:       }
// CHECK-NEXT:       slc.callback {
// CHECK-NEXT:         dlc.increment_var {id = 1 : i64}
// CHECK-NEXT:         slc.yield
// CHECK-NEXT:       }
// CHECK-NEXT:       slc.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     slc.callback {
// CHECK-NEXT:       dlc.increment_var
// CHECK-NEXT:       dlc.set_var %c0 {id = 1 : i64} : index
// CHECK-NEXT:       slc.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     slc.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
