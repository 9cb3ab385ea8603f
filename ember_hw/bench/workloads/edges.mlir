// A number for each edge of a graph: the dot product of the node's row with its neighbour's.
// Ref: SDDMM in FusedMM, IPDPS 2021.
func.func @kernel(%ptr: memref<?xi32>, %col: memref<?xi32>, %x: memref<?x?xf32>,
                  %y: memref<?x?xf32>, %out: memref<?xf32>, %N: index)
    attributes {ember.args = ["ptr", "col", "x", "y", "out", "N"], ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant 0.0 : f32
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
      %dot = scf.for %d = %c0 to %D step %c1 iter_args(%acc = %f0) -> (f32) {
        %u = memref.load %x[%i, %d] : memref<?x?xf32>
        %v = memref.load %y[%c, %d] : memref<?x?xf32>
        %m = arith.mulf %u, %v : f32
        %n = arith.addf %acc, %m : f32
        scf.yield %n : f32
      }
      memref.store %dot, %out[%p] : memref<?xf32>
    }
  }
  func.return
}
