// Sparse matrix in CSR times a dense one.
func.func @kernel(%ptr: memref<?xi32>, %col: memref<?xi32>, %val: memref<?xf32>,
                  %x: memref<?x?xf32>, %out: memref<?x?xf32>, %N: index)
    attributes {ember.args = ["ptr", "col", "val", "x", "out", "N"], ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %D = memref.dim %x, %c1 : memref<?x?xf32>
  scf.for %i = %c0 to %N step %c1 {
    %i1 = arith.addi %i, %c1 : index
    %s32 = memref.load %ptr[%i] : memref<?xi32>
    %e32 = memref.load %ptr[%i1] : memref<?xi32>
    %s = arith.index_cast %s32 : i32 to index
    %e = arith.index_cast %e32 : i32 to index
    scf.for %p = %s to %e step %c1 {
      %c32 = memref.load %col[%p] : memref<?xi32>
      %c = arith.index_cast %c32 : i32 to index
      %w = memref.load %val[%p] : memref<?xf32>
      scf.for %d = %c0 to %D step %c1 {
        %v = memref.load %x[%c, %d] : memref<?x?xf32>
        %a = memref.load %out[%i, %d] : memref<?x?xf32>
        %m = arith.mulf %w, %v : f32
        %n = arith.addf %a, %m : f32
        memref.store %n, %out[%i, %d] : memref<?x?xf32>
      }
    }
  }
  func.return
}
