// A size in a struct, an anonymous module, attributes with blanks in their names, a returned
// memref.
module {
  func.func @bag(%off: memref<?xindex>, %idx: memref<?xindex>,
                 %sizes: !llvm.struct<(array<2 x i64>, array<3 x i64>)>, %tab: memref<?x?xf64>,
                 %out: memref<?x?xf64>) -> memref<?x?xf64> {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %wide = llvm.extractvalue %sizes[0, 0] : !llvm.struct<(array<2 x i64>, array<3 x i64>)>
    %bags = arith.index_cast %wide : i64 to index
    %columns = memref.dim %tab, %one : memref<?x?xf64>
    scf.for %bag = %zero to %bags step %one {
      %first = memref.load %off[%bag] : memref<?xindex>
      %next = arith.addi %bag, %one : index
      %end = memref.load %off[%next] : memref<?xindex>
      scf.for %lookup = %first to %end step %one {
        %row = memref.load %idx[%lookup] : memref<?xindex>
        scf.for %column = %zero to %columns step %one {
          %sum = memref.load %out[%bag, %column] : memref<?x?xf64>
          %value = memref.load %tab[%row, %column] : memref<?x?xf64>
          %more = arith.addf %sum, %value : f64
          memref.store %more, %out[%bag, %column] : memref<?x?xf64>
        } {"made from" = "a generic op"}
      } {"made from" = "a generic op"}
    } {"made from" = "a generic op"}
    return %out : memref<?x?xf64>
  }
}
