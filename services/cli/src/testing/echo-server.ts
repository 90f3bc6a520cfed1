import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Engine } from '@tutti/backends'
import { createHealth, createLogger, loadTracingSettings, parseFlags } from '@tutti/chassis'
import { ServeError } from '@tutti/errors'
import type { Test } from 'tap'
import { startServe } from '../serve/serve.ts'
import { SERVE_FLAGS } from '../serve/serve-flags.ts'

const tensor = (name: string, datatype: string, dims: readonly number[]): string =>
  `{ name: "${name}" data_type: TYPE_${datatype} dims: [ ${dims.join(', ')} ] }`
/** Builds the configuration of a model with one input, `a=b`, and one output, `out`. */
export const echo = (datatype: string, dims: readonly number[], more = ''): string =>
  `backend: "echo" input [ ${tensor('a=b', datatype, dims)} ] output [ ${tensor('out', datatype, dims)} ]
   instance_group { kind: KIND_CPU } ${more}`

/** The configuration of an ensemble that executes a model `numbers`, of FP32 [3], twice. */
export const ECHO_CHAIN = `platform: "ensemble" max_batch_size: 8
  input [ ${tensor('x', 'FP32', [3])} ] output [ ${tensor('y', 'FP32', [3])} ]
  ensemble_scheduling {
    step { model_name: "numbers" model_version: -1
      input_map { key: "a=b" value: "x" } output_map { key: "out" value: "between" } }
    step { model_name: "numbers" model_version: -1
      input_map { key: "a=b" value: "between" } output_map { key: "out" value: "y" } }
  }`

const engine: Engine = {
  backend: 'echo',
  inspect: () => Promise.reject(new Error('everything is declared')),
  load: async ({ config }) => ({
    signature: { inputs: [], outputs: [] },
    execute: async (batch) => {
      for (const { request, sink } of batch) {
        const outputs = request.inputs.map((input) => ({
          ...input,
          name: 'out',
          data: Uint8Array.from(input.data),
        }))
        if (config.parameters['fails'] !== undefined) {
          sink.fail(new ServeError('INVALID_REQUEST', 'it does not like that'), 'maybe')
          continue
        }
        const count = config.model_transaction_policy?.decoupled === true ? 3 : 1
        for (let index = 0; index < count; index += 1) {
          sink.send({ index, final: index === count - 1, outputs, parameters: new Map() })
        }
      }
      return { computeInputNs: 1, computeInferNs: 1, computeOutputNs: 1 }
    },
    close: async () => {},
  }),
}

/** The addresses of a server. */
export interface Serving {
  readonly grpc: string
  readonly rest: string
  readonly metrics: string
  /** Closes the server before the end of the test. */
  close(): Promise<void>
}

/**
 * Serves models whose output is their input, on free ports of this machine, until the test ends.
 *
 * @param models - name -> configuration.
 */
export async function serveEcho(
  t: Test,
  models: Readonly<Record<string, string>>,
  argv: readonly string[] = [],
  folder = t.testdir(),
): Promise<Serving> {
  const path = join(folder, 'models')
  for (const [name, config] of Object.entries(models)) {
    await mkdir(join(path, name, '1'), { recursive: true })
    await writeFile(join(path, name, 'config.pbtxt'), config)
  }
  const lines: string[] = []
  const log = createLogger({
    level: 'info',
    name: 'test',
    destination: { write: (line: string) => lines.push(line) },
  })
  const loopback = ['grpc', 'http', 'metrics'].flatMap((server) => [
    `--${server}-address=127.0.0.1`,
    `--${server}-port=0`,
  ])
  const { values: flags } = parseFlags(SERVE_FLAGS, [
    ...loopback,
    `--model-repository=${path}`,
    ...argv,
  ])
  const running = await startServe({
    flags,
    log,
    health: createHealth(),
    settings: loadTracingSettings({}),
    signal: new AbortController().signal,
    engines: [engine],
  })
  let closing: Promise<void> | undefined
  const close = (): Promise<void> => (closing ??= running.close())
  t.teardown(close)
  const ready = lines
    .map((line) => JSON.parse(line))
    .find((line) => line.message === 'server ready')
  return {
    grpc: `grpc://127.0.0.1:${ready.grpcPort}`,
    rest: `http://127.0.0.1:${ready.httpPort}`,
    metrics: `http://127.0.0.1:${ready.metricsPort}`,
    close,
  }
}
