// RUN: %ember-opt -p 'slc-vectorizer{vector-length=4}' %s | filecheck %s

// The innermost loop; vectors hide behind temporary casts.

func.func @spmm(%off: memref<?xindex>, %idx: memref<?xi64>, %psw: memref<?xf32>, %tab: memref<?x?xf32>, %out: memref<?x?xf32>, %B: index) attributes {ember.args = ["off", "idx", "psw", "tab", "out", "B"], ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant 0.000000e+00 : f32
  %D = memref.dim %tab, %c1 : memref<?x?xf32>
  %0 = slc.to_stream %c0 : index to !slc.stream<index>
  %1 = slc.to_stream %B : index to !slc.stream<index>
  %2 = slc.to_stream %c1 : index to !slc.stream<index>
  %3 = slc.to_stream %D : index to !slc.stream<index>
  slc.for %b = %0 to %1 step %2 : !slc.stream<index> -> !slc.stream<index> {
    %b1 = slc.alu_stream<add> %b, %2 : !slc.stream<index>, !slc.stream<index> -> !slc.stream<index>
    %s = slc.mem_stream %off[%b] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
    %e = slc.mem_stream %off[%b1] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
    slc.for %j = %s to %e step %2 : !slc.stream<index> -> !slc.stream<index> {
      %i = slc.mem_stream %idx[%j] : memref<?xi64>[!slc.stream<index>] into !slc.stream<i64>
      %r = slc.cast_stream %i : !slc.stream<i64> to !slc.stream<index>
      %w = slc.mem_stream %psw[%j] : memref<?xf32>[!slc.stream<index>] into !slc.stream<f32>
      slc.for %d = %0 to %3 step %2 : !slc.stream<index> -> !slc.stream<index> {
        %v = slc.mem_stream %tab[%r, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<index>] into !slc.stream<f32>
        slc.callback {
          %b_1 = slc.from_stream %b : !slc.stream<index> to index
          %d_1 = slc.from_stream %d : !slc.stream<index> to index
          %w_1 = slc.from_stream %w : !slc.stream<f32> to f32
          %v_1 = slc.from_stream %v : !slc.stream<f32> to f32
          %a = memref.load %out[%b_1, %d_1] : memref<?x?xf32>
          %p = arith.mulf %w_1, %v_1 : f32
          %n = arith.addf %a, %p : f32
          memref.store %n, %out[%b_1, %d_1] : memref<?x?xf32>
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

// CHECK:      func.func @spmm(%off: memref<?xindex>, %idx: memref<?xi64>, %psw: memref<?xf32>, %tab: memref<?x?xf32>, %out: memref<?x?xf32>, %B: index) attributes {ember.args = ["off", "idx", "psw", "tab", "out", "B"], ember.noalias} {
// CHECK-NEXT:   %c0 = arith.constant 0 : index
// CHECK-NEXT:   %c1 = arith.constant 1 : index
// CHECK-NEXT:   %f0 = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:   %c4 = arith.constant 4 : index
// CHECK-NEXT:   %all = arith.constant dense<true> : vector<4xi1>
// CHECK-NEXT:   %D = memref.dim %tab, %c1 : memref<?x?xf32>
// CHECK-NEXT:   %0 = slc.to_stream %c0 : index to !slc.stream<index>
// CHECK-NEXT:   %1 = slc.to_stream %B : index to !slc.stream<index>
// CHECK-NEXT:   %2 = slc.to_stream %c1 : index to !slc.stream<index>
// CHECK-NEXT:   %3 = slc.to_stream %D : index to !slc.stream<index>
// CHECK-NEXT:   %4 = slc.to_stream %c4 : index to !slc.stream<index>
// CHECK-NEXT:   %5 = slc.to_stream %all : vector<4xi1> to !slc.stream<vector<4xi1>>
// CHECK-NEXT:   slc.for %b = %0 to %1 step %2 : !slc.stream<index> -> !slc.stream<index> {
// CHECK-NEXT:     %b1 = slc.alu_stream<add> %b, %2 : !slc.stream<index>, !slc.stream<index> -> !slc.stream<index>
// CHECK-NEXT:     %s = slc.mem_stream %off[%b] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
// CHECK-NEXT:     %e = slc.mem_stream %off[%b1] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
// CHECK-NEXT:     slc.for %j = %s to %e step %2 : !slc.stream<index> -> !slc.stream<index> {
// CHECK-NEXT:       %i = slc.mem_stream %idx[%j] : memref<?xi64>[!slc.stream<index>] into !slc.stream<i64>
// CHECK-NEXT:       %r = slc.cast_stream %i : !slc.stream<i64> to !slc.stream<index>
// CHECK-NEXT:       %w = slc.mem_stream %psw[%j] : memref<?xf32>[!slc.stream<index>] into !slc.stream<f32>
// CHECK-NEXT:       slcvec.for<4>(%d xx %mask) = %0 to %3 step %4 mask %5 : (!slc.stream<index> xx !slc.stream<vector<4xi1>>) -> (!slc.stream<vector<4xindex>> xx !slc.stream<vector<4xi1>>) {
// CHECK-NEXT:         %d_1 = slcvec.tmp_vec_stream_cast %d : !slc.stream<vector<4xindex>> to !slc.stream<index>
// CHECK-NEXT:         %v = slcvec.mem_stream %tab[%r, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<vector<4xindex>>] into !slc.stream<vector<4xf32>>
// CHECK-NEXT:         %v_1 = slcvec.tmp_vec_stream_cast %v : !slc.stream<vector<4xf32>> to !slc.stream<f32>
// CHECK-NEXT:         slc.callback {
// CHECK-NEXT:           %b_1 = slc.from_stream %b : !slc.stream<index> to index
// CHECK-NEXT:           %d_2 = slc.from_stream %d_1 : !slc.stream<index> to index
// CHECK-NEXT:           %w_1 = slc.from_stream %w : !slc.stream<f32> to f32
// CHECK-NEXT:           %v_2 = slc.from_stream %v_1 : !slc.stream<f32> to f32
// CHECK-NEXT:           %a = memref.load %out[%b_1, %d_2] : memref<?x?xf32>
// CHECK-NEXT:           %p = arith.mulf %w_1, %v_2 : f32
// CHECK-NEXT:           %n = arith.addf %a, %p : f32
// CHECK-NEXT:           memref.store %n, %out[%b_1, %d_2] : memref<?x?xf32>
// CHECK-NEXT:           slc.yield
// CHECK-NEXT:         }
// CHECK-NEXT:         slcvec.yield
// CHECK-NEXT:       } {loopConfig = #slcvec<loop_config bcast>}
// CHECK-NEXT:       slc.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     slc.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
