// Units without `under`, operands on an event that has no token, a compute loop with a result.
module {
  func.func @last(%n: index, %x: memref<?xf64>, %y: memref<?xf64>) {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %from = slc.to_stream %zero : index to !slc.stream<index>
    %by = slc.to_stream %one : index to !slc.stream<index>
    %to = slc.to_stream %n : index to !slc.stream<index>
    dlc.configure_access_engine {
      %t = dlc.new_tu %from to %to step %by : !slc.stream<index> into !dlc.tu
      %i = dlc.get_ind_var %t : !slc.stream<index>
      %u = dlc.new_tu %from to %i step %by : !slc.stream<index> into !dlc.tu
      %j = dlc.get_ind_var %u : !slc.stream<index>
      %v = slc.mem_stream %x[%j] : memref<?xf64>[!slc.stream<index>] into !slc.stream<f64>
      dlc.register_operand %u,  ite, %v : !dlc.tu, !slc.stream<f64>
      dlc.register_callback %t,  end {id = 4 : i64} : !dlc.tu
    } :
    %r = dlc.compute_loop -> index
    case 4 {
      %w = dlc.pop_operand : f64
      memref.store %w, %y[%zero] : memref<?xf64>
      dlc.yield
    }
    return
  }
}
