import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { NamedTensor, TensorValue } from '@tutti/tensor'
import type { Test } from 'tap'

const PROGRAM = fileURLToPath(new URL('./numpy_reference.py', import.meta.url))

/** Evaluates an expression, which sees each input as an array of its name. A tuple gives several tensors. */
export type Evaluate = (
  expression: string,
  inputs?: readonly NamedTensor[],
  setup?: string,
) => Promise<readonly TensorValue[]>

/** Starts one Python with NumPy, OpenCV and PIL for a test file. */
export function startNumpy(t: Test, python: string): Evaluate {
  const child = spawn(python, ['-u', PROGRAM], { stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  t.teardown(async () => {
    child.stdin.end()
    await ended
  })
  return async (expression, inputs = [], setup = '') => {
    const sent = inputs.map(({ name, data, ...rest }) => {
      return [name, { ...rest, data: Buffer.from(data).toString('base64') }]
    })
    child.stdin.write(
      `${JSON.stringify({ expression, setup, inputs: Object.fromEntries(sent) })}\n`,
    )
    const line = await lines.next()
    const reply: {
      readonly error?: string
      readonly outputs?: readonly (Omit<TensorValue, 'data'> & { readonly data: string })[]
    } = JSON.parse(line.value ?? '{}')
    if (reply.outputs === undefined) throw new Error(`${expression}: ${reply.error}`)
    return reply.outputs.map(({ data, ...rest }) => {
      return { ...rest, data: new Uint8Array(Buffer.from(data, 'base64')) }
    })
  }
}
