// The printed form of a vector loop, and chunks of 8 lanes that overlap: their step is 1.
module {
  func.func @rows(%n: index, %pick: memref<?xindex>, %x: memref<?x?xf64>, %y: memref<?x?xf64>) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %eight = arith.constant 8 : index
    %all = arith.constant dense<true> : vector<8xi1>
    %columns = memref.dim %x, %one : memref<?x?xf64>
    %from = slc.to_stream %zero : index to !slc.stream<index>
    %by = slc.to_stream %eight : index to !slc.stream<index>
    %to = slc.to_stream %columns : index to !slc.stream<index>
    %mask = slc.to_stream %all : vector<8xi1> to !slc.stream<vector<8xi1>>
    slc.for %i = %zero to %n step %one  : index -> !slc.stream<index> {
      %p = slc.mem_stream %pick[%i] : memref<?xindex>[!slc.stream<index>] into !slc.stream<index>
      %row = slcvec.buf_stream : !slc.stream<memref<?xf64>>
      slcvec.for <bcastx8> (%c && %m) = %from to %to step %by mask %mask  : (!slc.stream<index> && !slc.stream<vector<8xi1>>) -> (!slc.stream<vector<8xindex>> && !slc.stream<vector<8xi1>>) {
        %v = slcvec.mem_stream %x[%p, %c] : memref<?x?xf64>[!slc.stream<index>, !slc.stream<vector<8xindex>>] into !slc.stream<vector<8xf64>>
        slcvec.to_buffer %v, %row[%c] : !slc.stream<vector<8xf64>> -> !slc.stream<memref<?xf64>>[!slc.stream<vector<8xindex>>]
        slcvec.yield
      } {loopConfig = #slcvec<loop_config bcast>, vectorLength = 8 : index}
      slc.callback {
        %k = slc.from_stream %i : !slc.stream<index> to index
        %r = slc.from_stream %row : !slc.stream<memref<?xf64>> to memref<?xf64>
        scf.for %c = %zero to %columns step %one {
          %m = slcvec.mask %c %zero %columns %one : vector<8xi1>
          %w = slcvec.from_buffer %r[%c] : memref<?xf64>[index] -> vector<8xf64>
          vector.maskedstore %y[%k, %c], %m, %w : memref<?x?xf64>, vector<8xi1>, vector<8xf64>
        }
      }
      slc.yield
    }
    return
  }
}
