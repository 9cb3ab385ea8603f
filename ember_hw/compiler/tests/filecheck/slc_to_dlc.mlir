// RUN: %ember-opt -p 'slc-to-dlc' %s | filecheck %s

// Units, a row, and callbacks on the events of two units.

func.func @eb_mean(%off: memref<?xindex>, %idx: memref<?xi64>, %psw: memref<?xf32>, %tab: memref<?x?xf32>, %out: memref<?x?xf32>, %B: index) attributes {ember.args = ["off", "idx", "psw", "tab", "out", "B"], ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant 0.000000e+00 : f32
  %c4 = arith.constant 4 : index
  %all = arith.constant dense<true> : vector<4xi1>
  %zeros = arith.constant dense<0.000000e+00> : vector<4xf32>
  %D = memref.dim %tab, %c1 : memref<?x?xf32>
  %0 = slc.to_stream %c1 : index to !slc.stream<index>
  dlc.set_var %c0 : index
  slc.for %b = %c0 to %B step %c1 : index -> !slc.stream<index> {
    %b1 = slc.alu_stream<add> %b, %c1 : !slc.stream<index>, index -> !slc.stream<index>
    %s = slc.mem_stream %off[%b] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
    %e = slc.mem_stream %off[%b1] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
    %len = slc.alu_stream<sub> %e, %s : !slc.stream<index>, !slc.stream<index> -> !slc.stream<index>
    slc.for %j = %s to %e step %0 : !slc.stream<index> -> !slc.stream<index> {
      %i = slc.mem_stream %idx[%j] : memref<?xi64>[!slc.stream<index>] into !slc.stream<i64>
      %r = slc.cast_stream %i : !slc.stream<i64> to !slc.stream<index>
      %row = slcvec.buf_stream : !slc.stream<memref<?xf32>>
      slcvec.for<4>(%d xx %mask) = %c0 to %D step %c4 mask %all : (index xx vector<4xi1>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
        %v = slcvec.mem_stream %tab[%r, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>] into !slc.stream<vector<4xf32>>
        slcvec.to_buffer %v, %row[%d] : !slc.stream<vector<4xf32>> -> !slc.stream<memref<?xf32>>[!slc.stream<vector<4xindex>>]
        slcvec.yield
      } {loopConfig = #slcvec<loop_config bcast>}
      slc.callback {
        %b_1 = dlc.get_var : index
        %row_1 = slc.from_stream %row : !slc.stream<memref<?xf32>> to memref<?xf32>
        scf.for %d_1 = %c0 to %D step %c4 {
          %v_1 = slcvec.from_buffer %row_1[%d_1] : memref<?xf32>[index] -> vector<4xf32>
          %mask_1 = slcvec.mask %d_1 %c0 %D %c1 : vector<4xi1>
          %a = vector.maskedload %out[%b_1, %d_1], %mask_1, %zeros : memref<?x?xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
          %n = arith.addf %a, %v_1 : vector<4xf32>
          vector.maskedstore %out[%b_1, %d_1], %mask_1, %n : memref<?x?xf32>, vector<4xi1>, vector<4xf32>
        }
        slc.yield
      }
      slc.yield
    }
    slc.callback {
      %b_2 = dlc.get_var : index
      %len_1 = slc.from_stream %len : !slc.stream<index> to index
      %l1 = arith.maxsi %len_1, %c1 : index
      %li = arith.index_cast %l1 : index to i64
      %lf = arith.sitofp %li : i64 to f32
      scf.for %d_2 = %c0 to %D step %c1 {
        %a_1 = memref.load %out[%b_2, %d_2] : memref<?x?xf32>
        %q = arith.divf %a_1, %lf : f32
        memref.store %q, %out[%b_2, %d_2] : memref<?x?xf32>
      }
      dlc.increment_var
      slc.yield
    }
    slc.yield
  }
  func.return
}

// CHECK:      func.func @eb_mean(%off: memref<?xindex>, %idx: memref<?xi64>, %psw: memref<?xf32>, %tab: memref<?x?xf32>, %out: memref<?x?xf32>, %B: index) attributes {ember.args = ["off", "idx", "psw", "tab", "out", "B"], ember.noalias} {
// CHECK-NEXT:   %c0 = arith.constant 0 : index
// CHECK-NEXT:   %c1 = arith.constant 1 : index
// CHECK-NEXT:   %c4 = arith.constant 4 : index
// CHECK-NEXT:   %zeros = arith.constant dense<0.000000e+00> : vector<4xf32>
// CHECK-NEXT:   %D = memref.dim %tab, %c1 : memref<?x?xf32>
// CHECK-NEXT:   %0 = slc.to_stream %c1 : index to !slc.stream<index>
// CHECK-NEXT:   dlc.set_var %c0 : index
// CHECK-NEXT:   dlc.configure_access_engine {
// CHECK-NEXT:     %t0 = dlc.new_tu %c0 to %B step %c1 : index into !dlc.tu
// CHECK-NEXT:     %b = dlc.get_ind_var %t0 : !slc.stream<index>
// CHECK-NEXT:     %b1 = slc.alu_stream<add> %b, %c1 : !slc.stream<index>, index -> !slc.stream<index>
// CHECK-NEXT:     %s = slc.mem_stream %off[%b] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
// CHECK-NEXT:     %e = slc.mem_stream %off[%b1] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
// CHECK-NEXT:     %len = slc.alu_stream<sub> %e, %s : !slc.stream<index>, !slc.stream<index> -> !slc.stream<index>
// CHECK-NEXT:     %t1 = dlc.new_tu %s to %e step %0 {under = 0 : i64} : !slc.stream<index> into !dlc.tu
// CHECK-NEXT:     %j = dlc.get_ind_var %t1 : !slc.stream<index>
// CHECK-NEXT:     %i = slc.mem_stream %idx[%j] : memref<?xi64>[!slc.stream<index>] into !slc.stream<i64>
// CHECK-NEXT:     %r = slc.cast_stream %i : !slc.stream<i64> to !slc.stream<index>
// CHECK-NEXT:     %row = dlc.row_stream %tab[%r] len %D : memref<?x?xf32>[!slc.stream<index>], index into !slc.stream<memref<?xf32>>
// CHECK-NEXT:     dlc.register_callback %t1, ite {id = 1 : i64} : !dlc.tu
// CHECK-NEXT:     dlc.register_operand %t1, ite, %row : !dlc.tu, !slc.stream<memref<?xf32>>
// CHECK-NEXT:     dlc.register_callback %t1, end {id = 2 : i64} : !dlc.tu
// CHECK-NEXT:     dlc.register_operand %t1, end, %len : !dlc.tu, !slc.stream<index>
// CHECK-NEXT:     dlc.yield
// CHECK-NEXT:   } :
// CHECK-NEXT:   dlc.compute_loop
// CHECK-NEXT:   case 1 {
// CHECK-NEXT:     %row_1 = dlc.pop_operand : memref<?xf32>
// CHECK-NEXT:     %b_1 = dlc.get_var : index
// CHECK-NEXT:     scf.for %d = %c0 to %D step %c4 {
// CHECK-NEXT:       %v = slcvec.from_buffer %row_1[%d] : memref<?xf32>[index] -> vector<4xf32>
// CHECK-NEXT:       %mask = slcvec.mask %d %c0 %D %c1 : vector<4xi1>
// CHECK-NEXT:       %a = vector.maskedload %out[%b_1, %d], %mask, %zeros : memref<?x?xf32>, vector<4xi1>, vector<4xf32> into vector<4xf32>
// CHECK-NEXT:       %n = arith.addf %a, %v : vector<4xf32>
// CHECK-NEXT:       vector.maskedstore %out[%b_1, %d], %mask, %n : memref<?x?xf32>, vector<4xi1>, vector<4xf32>
// CHECK-NEXT:     }
// CHECK-NEXT:     dlc.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   case 2 {
// CHECK-NEXT:     %len_1 = dlc.pop_operand : index
// CHECK-NEXT:     %b_2 = dlc.get_var : index
// CHECK-NEXT:     %l1 = arith.maxsi %len_1, %c1 : index
// CHECK-NEXT:     %li = arith.index_cast %l1 : index to i64
// CHECK-NEXT:     %lf = arith.sitofp %li : i64 to f32
// CHECK-NEXT:     scf.for %d_1 = %c0 to %D step %c1 {
// CHECK-NEXT:       %a_1 = memref.load %out[%b_2, %d_1] : memref<?x?xf32>
// CHECK-NEXT:       %q = arith.divf %a_1, %lf : f32
// CHECK-NEXT:       memref.store %q, %out[%b_2, %d_1] : memref<?x?xf32>
// CHECK-NEXT:     }
// CHECK-NEXT:     dlc.increment_var
// CHECK-NEXT:     dlc.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
