// RUN: %ember-opt -p 'scf-to-slc' %s | filecheck %s

// Streams, sunk reads, and the order of a callback's reads.

func.func @spmm(%off: memref<?xindex>, %idx: memref<?xi64>, %psw: memref<?xf32>, %tab: memref<?x?xf32>, %out: memref<?x?xf32>, %B: index) attributes {ember.args = ["off", "idx", "psw", "tab", "out", "B"], ember.noalias} {
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
      %w = memref.load %psw[%j] : memref<?xf32>
      scf.for %d = %c0 to %D step %c1 {
        %v = memref.load %tab[%r, %d] : memref<?x?xf32>
        slc.callback {
          %a = memref.load %out[%b, %d] : memref<?x?xf32>
          %p = arith.mulf %w, %v : f32
          %n = arith.addf %a, %p : f32
          memref.store %n, %out[%b, %d] : memref<?x?xf32>
          slc.yield
        }
      } {ember.offload}
    } {ember.offload}
  } {ember.offload}
  func.return
}

// CHECK:      func.func @spmm(%off: memref<?xindex>, %idx: memref<?xi64>, %psw: memref<?xf32>, %tab: memref<?x?xf32>, %out: memref<?x?xf32>, %B: index) attributes {ember.args = ["off", "idx", "psw", "tab", "out", "B"], ember.noalias} {
// CHECK-NEXT:   %c0 = arith.constant 0 : index
// CHECK-NEXT:   %c1 = arith.constant 1 : index
// CHECK-NEXT:   %f0 = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:   %D = memref.dim %tab, %c1 : memref<?x?xf32>
// CHECK-NEXT:   %0 = slc.to_stream %c0 : index to !slc.stream<index>
// CHECK-NEXT:   %1 = slc.to_stream %B : index to !slc.stream<index>
// CHECK-NEXT:   %2 = slc.to_stream %c1 : index to !slc.stream<index>
// CHECK-NEXT:   %3 = slc.to_stream %D : index to !slc.stream<index>
// CHECK-NEXT:   slc.for %b = %0 to %1 step %2 : !slc.stream<index> -> !slc.stream<index> {
// CHECK-NEXT:     %b1 = slc.alu_stream<add> %b, %2 : !slc.stream<index>, !slc.stream<index> -> !slc.stream<index>
// CHECK-NEXT:     %s = slc.mem_stream %off[%b] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
// CHECK-NEXT:     %e = slc.mem_stream %off[%b1] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
// CHECK-NEXT:     slc.for %j = %s to %e step %2 : !slc.stream<index> -> !slc.stream<index> {
// CHECK-NEXT:       %i = slc.mem_stream %idx[%j] : memref<?xi64>[!slc.stream<index>] into !slc.stream<i64>
// CHECK-NEXT:       %r = slc.cast_stream %i : !slc.stream<i64> to !slc.stream<index>
// CHECK-NEXT:       %w = slc.mem_stream %psw[%j] : memref<?xf32>[!slc.stream<index>] into !slc.stream<f32>
// CHECK-NEXT:       slc.for %d = %0 to %3 step %2 : !slc.stream<index> -> !slc.stream<index> {
// CHECK-NEXT:         %v = slc.mem_stream %tab[%r, %d] : memref<?x?xf32>[!slc.stream<index>, !slc.stream<index>] into !slc.stream<f32>
// CHECK-NEXT:         slc.callback {
// CHECK-NEXT:           %b_1 = slc.from_stream %b : !slc.stream<index> to index
// CHECK-NEXT:           %d_1 = slc.from_stream %d : !slc.stream<index> to index
// CHECK-NEXT:           %w_1 = slc.from_stream %w : !slc.stream<f32> to f32
// CHECK-NEXT:           %v_1 = slc.from_stream %v : !slc.stream<f32> to f32
// CHECK-NEXT:           %a = memref.load %out[%b_1, %d_1] : memref<?x?xf32>
// CHECK-NEXT:           %p = arith.mulf %w_1, %v_1 : f32
// CHECK-NEXT:           %n = arith.addf %a, %p : f32
// CHECK-NEXT:           memref.store %n, %out[%b_1, %d_1] : memref<?x?xf32>
// CHECK-NEXT:           slc.yield
// CHECK-NEXT:         }
// CHECK-NEXT:         slc.yield
// CHECK-NEXT:       }
// CHECK-NEXT:       slc.yield
// CHECK-NEXT:     }
// CHECK-NEXT:     slc.yield
// CHECK-NEXT:   }
// CHECK-NEXT:   func.return
// CHECK-NEXT: }
