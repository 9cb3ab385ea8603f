// Block-sparse attention: products of a block of queries, `near`, with each gathered key.
func.func @kernel(%near: memref<?x?xf32>, %tab: memref<?x?xf32>, %blk: memref<?x?xi32>,
                  %out: memref<?x?xf32>, %NB: index, %NS: index)
    attributes {ember.args = ["near", "tab", "blk", "out", "NB", "NS"], ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %f0 = arith.constant 0.0 : f32
  %BS = arith.constant BLOCK_ROWS : index
  %D = memref.dim %tab, %c1 : memref<?x?xf32>
  scf.for %qb = %c0 to %NB step %c1 {
    %q0 = arith.muli %qb, %BS : index
    scf.for %n = %c0 to %NS step %c1 {
      %b32 = memref.load %blk[%qb, %n] : memref<?x?xi32>
      %b = arith.index_cast %b32 : i32 to index
      %k0 = arith.muli %b, %BS : index
      %s0 = arith.muli %n, %BS : index
      scf.for %k = %c0 to %BS step %c1 {
        %r = arith.addi %k0, %k : index
        %col = arith.addi %s0, %k : index
        scf.for %i = %c0 to %BS step %c1 {
          %qr = arith.addi %q0, %i : index
          %dot = scf.for %d = %c0 to %D step %c1 iter_args(%acc = %f0) -> (f32) {
            %x = memref.load %tab[%r, %d] : memref<?x?xf32>
            %y = memref.load %near[%qr, %d] : memref<?x?xf32>
            %m = arith.mulf %x, %y : f32
            %a = arith.addf %acc, %m : f32
            scf.yield %a : f32
          }
          memref.store %dot, %out[%qr, %col] : memref<?x?xf32>
        }
      }
    }
  }
  func.return
}
