// An operation with a blank in front, a marker, and a callback that declares a result it lacks.
module {
  func.func @scale(%n: index, %pick: memref<?xindex>, %x: memref<?xf64>, %y: memref<?xf64>) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %from = slc.to_stream %zero : index to !slc.stream<index>
    %by = slc.to_stream %one : index to !slc.stream<index>
    %to = slc.to_stream %n : index to !slc.stream<index>
    slc.for %i = %from to %to step %by  : !slc.stream<index> -> !slc.stream<index> {
      slcvec.vectorize_for
      %j = slc.alu_stream< mul> %i, %by : !slc.stream<index>, !slc.stream<index> -> !slc.stream<index>
      %p = slc.mem_stream %pick[%j] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
      %v = slc.mem_stream %x[%p] : memref<?xf64>[!slc.stream<index>] into !slc.stream<f64>
      slc.callback {
        %k = slc.from_stream %i : !slc.stream<index> to index
        %w = slc.from_stream %v : !slc.stream<f64> to f64
        %t = arith.mulf %w, %w : f64
        memref.store %t, %y[%k] : memref<?xf64>
      } : index
      slc.yield
    }
    return
  }
}
