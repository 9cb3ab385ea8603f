// Many embedding tables, their rows one behind the other in `tab`, `base` the first row of each;
// a batch of `B` bags a table, mode sum. Ref: SparseLengthsSum of DLRM.
func.func @kernel(%base: memref<?xi32>, %off: memref<?xi32>, %idx: memref<?xi32>,
                  %tab: memref<?x?xf32>, %out: memref<?x?xf32>, %T: index, %B: index)
    attributes {ember.args = ["base", "off", "idx", "tab", "out", "T", "B"], ember.noalias} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %D = memref.dim %tab, %c1 : memref<?x?xf32>
  scf.for %t = %c0 to %T step %c1 {
    %f32 = memref.load %base[%t] : memref<?xi32>
    %f = arith.index_cast %f32 : i32 to index
    %tB = arith.muli %t, %B : index
    scf.for %b = %c0 to %B step %c1 {
      %g = arith.addi %tB, %b : index
      %g1 = arith.addi %g, %c1 : index
      %s32 = memref.load %off[%g] : memref<?xi32>
      %e32 = memref.load %off[%g1] : memref<?xi32>
      %s = arith.index_cast %s32 : i32 to index
      %e = arith.index_cast %e32 : i32 to index
      scf.for %j = %s to %e step %c1 {
        %i32 = memref.load %idx[%j] : memref<?xi32>
        %i = arith.index_cast %i32 : i32 to index
        %r = arith.addi %i, %f : index
        scf.for %d = %c0 to %D step %c1 {
          %v = memref.load %tab[%r, %d] : memref<?x?xf32>
          %a = memref.load %out[%g, %d] : memref<?x?xf32>
          %n = arith.addf %a, %v : f32
          memref.store %n, %out[%g, %d] : memref<?x?xf32>
        }
      }
    }
  }
  func.return
}
