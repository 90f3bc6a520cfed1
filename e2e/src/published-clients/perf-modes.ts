/** A mode of perf_analyzer, and which model it loads. */
export interface PerfMode {
  readonly name: string
  readonly args: string
  /** Words of perf_analyzer where a router answers. */
  readonly refusedByRouters?: RegExp
}

/**
 * Every mode that the server supports. `DATA` stands for a file of inputs, `METRICS` for the address of metrics.
 * perf_analyzer itself fails if a request does, or if the server's statistics do not fit what it sent.
 */
export const PERF_MODES: readonly PerfMode[] = [
  { name: 'synchronous', args: '-m add_one_batch -i HTTP' },
  { name: 'synchronous, gRPC', args: '-m add_one_batch -i GRPC' },
  { name: 'asynchronous', args: '-m add_one_batch -i HTTP --async --concurrency-range 4' },
  { name: 'asynchronous, gRPC', args: '-m add_one_batch -i GRPC --async --concurrency-range 8' },
  { name: 'a stream', args: '-m add_one_batch -i GRPC --async --streaming' },
  { name: 'batches', args: '-m add_one_batch -i GRPC -b 4' },
  { name: 'gzip', args: '-m add_one_batch -i GRPC --grpc-compression-algorithm gzip' },
  { name: 'deflate', args: '-m add_one_batch -i GRPC --grpc-compression-algorithm deflate' },
  {
    name: 'JSON tensors',
    args: '-m add_one_batch -i HTTP --input-tensor-format json --output-tensor-format json',
  },
  { name: 'texts', args: '-m identity_string -i HTTP --shape x:4 --string-length 8' },
  { name: 'texts, gRPC', args: '-m identity_string -i GRPC --shape x:4 --string-data hello' },
  { name: 'a version', args: '-m add_one_batch -i GRPC -x 1 --percentile=95' },
  { name: 'zeros', args: '-m add_one_batch -i HTTP --input-data zero' },
  { name: 'a constant rate', args: '-m add_one_batch -i GRPC --request-rate-range 40' },
  {
    name: 'a random rate',
    args: '-m add_one_batch -i HTTP --request-rate-range 40 --request-distribution poisson',
  },
  { name: 'an ensemble', args: '-m ens_chain -i GRPC --concurrency-range 2' },
  { name: 'an ensemble, nested', args: '-m ens_nested -i HTTP' },
  { name: 'metrics', args: '-m add_one_batch -i HTTP --collect-metrics --metrics-url METRICS' },
  {
    name: 'sequences on a stream',
    args: '-m seq_sum -i GRPC --async --streaming --sequence-length 4 --concurrency-range 2 --input-data DATA',
  },
  { name: 'sequences', args: '-m seq_oldest -i HTTP --sequence-length 4 --input-data DATA' },
  {
    name: 'sequences at a rate',
    args: '-m seq_sum -i GRPC --async --streaming --request-rate-range 40 --num-of-sequences 2 --sequence-length 4 --serial-sequences --input-data DATA',
  },
  {
    name: 'several responses',
    args: '-m repeated -i GRPC --async --streaming --input-data zero --shape IN:3 --shape DELAY:3',
  },
  ...['HTTP', 'GRPC', 'GRPC --async --streaming'].map((protocol) => ({
    name: `shared memory, ${protocol}`,
    args: `-m add_one_batch -i ${protocol} --shared-memory system --output-shared-memory-size 1024`,
    refusedByRouters: /Unable to unregister all shared memory regions/,
  })),
  {
    name: 'traces',
    args: '-m add_one_batch -i GRPC --trace-level TIMESTAMPS --trace-rate 1',
    refusedByRouters: /trace settings? .*not (offered|supported)/i,
  },
]
