/** A line of `curl` as Triton's documentation has it, with the models of the tests. */
export interface CurlLine {
  /** The words after `curl`; localhost:8000 and localhost:8002 stand for the server's ports. */
  readonly line: readonly string[]
  /** HTTP status, in one process and behind a router. */
  readonly status: readonly [number, number]
  readonly answer?: RegExp
}

const V2 = 'localhost:8000/v2'
const INPUT = { name: 'X', shape: [1, 16], datatype: 'FP32' }
const VALUES = Array.from({ length: 16 }, (_, i) => i)
const INFER = JSON.stringify({ id: '42', inputs: [{ ...INPUT, data: VALUES }] })
const TEXT = { name: 'x', shape: [1, 1], datatype: 'BYTES', data: ['hello'] }

export const CURL_LINES: readonly CurlLine[] = [
  { line: ['-v', `${V2}/health/ready`], status: [200, 200] },
  { line: ['-m', '1', '-L', '-s', `${V2}/health/live`], status: [200, 200] },
  { line: [V2], status: [200, 200], answer: /"extensions"/ },
  { line: [`${V2}/models/add_one_batch`], status: [200, 200], answer: /"platform"/ },
  { line: [`${V2}/models/add_one_batch/versions/1/ready`], status: [200, 200] },
  { line: [`${V2}/models/add_one_batch/config`], status: [200, 200], answer: /"max_batch_size":8/ },
  { line: [`${V2}/models/add_one_batch/stats`], status: [200, 200], answer: /"inference_count"/ },
  { line: ['-X', 'POST', `${V2}/repository/index`], status: [200, 200], answer: /"READY"/ },
  {
    line: ['-X', 'POST', `${V2}/repository/index`, '-d', '{"ready":true}'],
    status: [200, 200],
    answer: /"READY"/,
  },
  {
    line: ['-s', '-X', 'POST', `${V2}/models/add_one_batch/infer`, '-d', INFER],
    status: [200, 200],
    answer: /"id":"42".*"data":\[1\.0,2\.0/,
  },
  {
    line: [
      '-X',
      'POST',
      `${V2}/models/add_one_batch/infer`,
      '-H',
      'Content-Type: application/json',
      '-H',
      'Accept-Encoding: gzip',
      '--compressed',
      '-d',
      INFER,
    ],
    status: [200, 200],
    answer: /"data":\[1\.0,2\.0/,
  },
  {
    line: [
      '-X',
      'POST',
      `${V2}/models/identity_string/infer`,
      '-d',
      JSON.stringify({ inputs: [TEXT] }),
    ],
    status: [200, 200],
    answer: /"data":\["hello"\]/,
  },
  {
    line: ['-X', 'POST', `${V2}/models/identity_string/generate`, '-d', '{"x":"hello"}'],
    status: [200, 200],
    answer: /"y":"hello"/,
  },
  {
    line: [
      '-N',
      '-X',
      'POST',
      `${V2}/models/identity_string/generate_stream`,
      '-d',
      '{"x":"hello"}',
    ],
    status: [200, 200],
    answer: /^data: \{.*"y":"hello"/,
  },
  {
    line: ['-X', 'POST', `${V2}/repository/models/add_one_batch/load`],
    status: [200, 503],
  },
  {
    line: [
      '-X',
      'POST',
      `${V2}/repository/models/add_sub/unload`,
      '-d',
      '{"parameters":{"unload_dependents":true}}',
    ],
    status: [200, 503],
  },
  {
    line: ['-s', '-d', '{"log_verbose_level":0}', '-X', 'POST', `${V2}/logging`],
    status: [200, 501],
  },
  { line: [`${V2}/trace/setting`], status: [200, 501] },
  { line: [`${V2}/models/absent`], status: [404, 404], answer: /unknown model: 'absent'/ },
  { line: ['localhost:8002/metrics'], status: [200, 200], answer: /nv_inference_request_success/ },
]
