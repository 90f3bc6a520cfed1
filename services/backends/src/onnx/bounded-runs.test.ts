import { truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { buildOnnx, ONNX_FIELDS, type OperatorSpec, writeBytes } from '@tutti/builtins'
import t, { type Test } from 'tap'
import { identitySpec, writeModelFile } from '../testing/add-model.ts'
import { hasBoundedRuns } from './bounded-runs.ts'

async function write(t: Test, bytes: Uint8Array): Promise<string> {
  const { directory, remove } = await writeModelFile(bytes)
  t.teardown(remove)
  return join(directory, 'model.onnx')
}

const build = (...operators: OperatorSpec[]): Uint8Array =>
  buildOnnx({ ...identitySpec('FP32'), operators })
const identity = { op: 'Identity', inputs: ['x'], outputs: ['y'] }

await t.test('runs are bounded unless an operator goes by values', async (t) => {
  t.ok(await hasBoundedRuns(await write(t, build(identity))))
  for (const op of ['Loop', 'Range', 'ConstantOfShape', 'If']) {
    t.notOk(await hasBoundedRuns(await write(t, build({ ...identity, op }, identity))), op)
  }
  const other = { ...identity, op: 'BeamSearch', domain: 'com.microsoft' }
  t.notOk(await hasBoundedRuns(await write(t, build(identity, other))))
  t.ok(await hasBoundedRuns(await write(t, build({ ...identity, domain: 'ai.onnx.ml' }))))
})

await t.test('of models with functions, and of large ones, nothing is known', async (t) => {
  const withFunction = Buffer.concat([
    build(identity),
    writeBytes(ONNX_FIELDS.MODEL.FUNCTIONS, Buffer.alloc(2)),
  ])
  t.notOk(await hasBoundedRuns(await write(t, withFunction)))
  const file = await write(t, build(identity))
  await truncate(file, 5 * 1024 * 1024)
  t.notOk(await hasBoundedRuns(file))
})
