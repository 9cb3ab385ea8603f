// Block-sparse attention: gathers a block of queries, then the blocks of keys and values that it
// attends to. A block's rows touch, so a block is a row here. Ref: BigBird, NeurIPS 2020.
func.func @kernel(%ptr: memref<?xi32>, %blk: memref<?xi32>, %q: memref<?x?xf32>,
                  %k: memref<?x?xf32>, %v: memref<?x?xf32>, %oq: memref<?x?xf32>,
                  %ok: memref<?x?xf32>, %ov: memref<?x?xf32>, %N: index)
    attributes {ember.args = ["ptr", "blk", "q", "k", "v", "oq", "ok", "ov", "N"],
                ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %Q = memref.dim %q, %c1 : memref<?x?xf32>
  %D = memref.dim %k, %c1 : memref<?x?xf32>
  scf.for %b = %c0 to %N step %c1 {
    %b1 = arith.addi %b, %c1 : index
    %s32 = memref.load %ptr[%b] : memref<?xi32>
    %e32 = memref.load %ptr[%b1] : memref<?xi32>
    %s = arith.index_cast %s32 : i32 to index
    %e = arith.index_cast %e32 : i32 to index
    scf.for %d = %c0 to %Q step %c1 {
      %qv = memref.load %q[%b, %d] : memref<?x?xf32>
      memref.store %qv, %oq[%b, %d] : memref<?x?xf32>
    }
    scf.for %p = %s to %e step %c1 {
      %c32 = memref.load %blk[%p] : memref<?xi32>
      %c = arith.index_cast %c32 : i32 to index
      scf.for %d = %c0 to %D step %c1 {
        %kv = memref.load %k[%c, %d] : memref<?x?xf32>
        %vv = memref.load %v[%c, %d] : memref<?x?xf32>
        memref.store %kv, %ok[%p, %d] : memref<?x?xf32>
        memref.store %vv, %ov[%p, %d] : memref<?x?xf32>
      }
    }
  }
  func.return
}
