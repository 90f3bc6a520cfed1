import { createDevices, type Devices, NO_DEVICES } from '@tutti/backends'
import { createLogger } from '@tutti/chassis'
import { createManualClock } from '@tutti/chassis/testing'
import { ServeError } from '@tutti/errors'
import t, { type Test } from 'tap'
import {
  LOADER_CONFIG,
  openLoaderRig,
  revisionOf,
  sendPinned,
  untilSo,
} from '../testing/loader-rig.ts'
import type { ScriptedModel } from '../testing/scripted-engine.ts'

const FAULT = new ServeError(
  'ENGINE_FAILED',
  'Non-zero status code returned while running MatMul node. CUDA failure 700: an illegal memory access was encountered ; GPU=0',
)
/** The code of the model chooses where it executes. */
const CONFIG = `${LOADER_CONFIG}
instance_group { kind: KIND_MODEL }`
const MEMORY = new ServeError('ENGINE_FAILED', 'CUDA failure 2: out of memory ; GPU=0')

/** A model whose executions the test ends, in a process that tells when it has lost the model. */
async function open(
  t: Test,
  o: {
    readonly config?: string
    readonly replaces?: boolean
    readonly devices?: Devices
  } = {},
) {
  const lost: string[] = []
  const lines: string[] = []
  const clock = createManualClock()
  const destination = { write: (line: string) => lines.push(line) }
  const rig = await openLoaderRig(
    t,
    { m: { 1: { f: 'a' } } },
    {
      clock,
      devices: o.devices ?? NO_DEVICES,
      modelLost: (problem) => lost.push(problem),
      log: createLogger({ level: 'info', name: 'test', destination }),
    },
  )
  await rig.write('m/config.pbtxt', o.config ?? CONFIG)
  const replaced: number[] = []
  rig.engine.onLoad = (model) => {
    if (o.replaces !== true) return
    Object.assign(model, {
      replace: (instance: number) => {
        replaced.push(instance)
        return Promise.resolve()
      },
    })
  }
  await rig.step.models.load('m')
  const model = rig.engine.model('m/1')
  model.isImmediate = false
  const messages = (): readonly string[] => lines.map((line) => JSON.parse(line).message)
  return { ...rig, clock, model, lost, replaced, messages, revision: revisionOf(rig.step) }
}

type Opened = Awaited<ReturnType<typeof open>>

/** Executes one request, which the engine fails with the error; without one it goes well. */
async function execute({ step, model, revision }: Opened, error?: ServeError): Promise<void> {
  const before = model.executions.length
  const { done } = sendPinned(step, revision)
  await model.begun(before + 1)
  end(model, error)
  await done
}

/** Ends the last execution. */
function end(model: ScriptedModel, error?: ServeError): void {
  const execution = model.at(-1)
  if (error === undefined) return execution.finish()
  execution.send(0, { error })
  execution.end()
}

/** Fails three executions with a fault of the device, and waits for the one that tries it. */
async function failThrice(rig: Opened): Promise<void> {
  for (let i = 0; i < 3; i += 1) await execute(rig, FAULT)
  const { length } = rig.model.executions
  await rig.model.begun(length + (rig.model.busy.size > 0 ? 0 : 1))
}

await t.test('a model is lost if its device fails four executions in a row', async (t) => {
  const rig = await open(t)
  const { step, model, revision, lost, states } = rig
  for (const error of [FAULT, FAULT, undefined, FAULT, MEMORY, FAULT]) await execute(rig, error)
  t.equal(model.executions.length, 6, 'a success ends the row, and other errors do not count')
  await execute(rig, FAULT)
  const waiting = sendPinned(step, revision)
  await model.begun(8)
  t.same(model.at(7).requests[0]?.inputs[0]?.shape, [1], 'zeros in the smallest shape')
  t.equal(waiting.sink.outcome, '', 'what waits is not executed meanwhile')
  end(model, FAULT)
  await waiting.done
  t.match(waiting.sink.outcome, 'UNAVAILABLE SERVER_STOPPING', 'it may be tried elsewhere')
  t.equal(waiting.sink.executed, 'no')
  t.equal(model.executions.length, 8)
  t.match(states()[0], /^1: UNAVAILABLE 3 executions in a row failed .* CUDA failure 700/)
  t.match(lost, [/^model 'm' version 1: 3 executions in a row failed/])
  const late = sendPinned(step, revision)
  await late.done
  t.match(late.sink.outcome, /UNAVAILABLE/, 'no request comes to the engine')
  t.equal(model.executions.length, 8)
  await step.close()
  t.equal(model.isClosed, false, 'freeing what is on the device could end the process')
})

await t.test('it stays if the request that tries the device goes well', async (t) => {
  const rig = await open(t)
  await failThrice(rig)
  end(rig.model)
  await untilSo(() => rig.messages().includes('the device works again'))
  t.same(rig.states(), ['1: READY'])
  t.same(rig.lost, [])
  await execute(rig)
  t.comment('the row begins anew')
  await execute(rig, FAULT)
  await execute(rig, FAULT)
  t.same(rig.lost, [])
  t.equal(rig.model.executions.length, 7)
})

await t.test(
  'it stays if the request that tries the device fails for another reason',
  async (t) => {
    const rig = await open(t, { replaces: true })
    await failThrice(rig)
    end(rig.model, MEMORY)
    await untilSo(() => rig.messages().includes('the device works again'))
    t.same([rig.states(), rig.replaced, rig.lost], [['1: READY'], [], []])
  },
)

await t.test('a model is watched where it may use a device, and only there', async (t) => {
  const config = `${LOADER_CONFIG}\ninstance_group { kind: KIND_CPU }`
  const without = await open(t, { config })
  for (let i = 0; i < 4; i += 1) await execute(without, FAULT)
  t.equal(without.model.executions.length, 4, 'no request tries a device')
  const accelerator = { resourceName: 'nvidia.com/gpu', count: 1 }
  const rig = await open(t, { config, devices: createDevices({ accelerator }) })
  await failThrice(rig)
  end(rig.model, FAULT)
  await untilSo(() => rig.lost.length > 0)
})

await t.test('the device is tried with the first sample of model_warmup', async (t) => {
  const config = `${CONFIG}
    model_warmup { name: "s" batch_size: 1
      inputs { key: "x" value { data_type: TYPE_FP32 dims: 5 zero_data: true } } }`
  const rig = await open(t, { config })
  await failThrice(rig)
  t.same(rig.model.at(-1).requests[0]?.inputs[0]?.shape, [5])
  end(rig.model, FAULT)
  await untilSo(() => rig.lost.length > 0)
})

await t.test('an execution that does not end counts as one that fails', async (t) => {
  const rig = await open(t)
  await failThrice(rig)
  await new Promise(setImmediate)
  rig.clock.advance(30_000)
  await untilSo(() => rig.lost.length > 0)
  t.match(rig.lost, [/no answer after 30 s/])
  end(rig.model)
})

await t.test('a process of the instance is replaced first', async (t) => {
  const rig = await open(t, { replaces: true })
  await failThrice(rig)
  end(rig.model, FAULT)
  await untilSo(() => rig.replaced.length > 0)
  t.same(rig.replaced, [0])
  t.same(rig.states(), ['1: READY'])
  await execute(rig)
  t.comment('it is again, once it has executed something')
  await failThrice(rig)
  end(rig.model, FAULT)
  await untilSo(() => rig.replaced.length > 1)
  t.same(rig.lost, [])
  t.comment('a new process that executes nothing does not help')
  await failThrice(rig)
  end(rig.model, FAULT)
  await untilSo(() => rig.lost.length > 0)
  t.equal(rig.replaced.length, 2)
  await rig.step.close()
  t.equal(rig.model.isClosed, true, 'its processes end')
})

await t.test('a lost model is loaded anew if that is requested', async (t) => {
  const rig = await open(t)
  await failThrice(rig)
  end(rig.model, FAULT)
  await untilSo(() => rig.lost.length > 0)
  await rig.step.models.load('m')
  t.same(rig.states(), ['1: READY'])
  const again = rig.engine.model('m/1')
  t.not(again, rig.model)
  again.isImmediate = true
  const { sink, done } = sendPinned(rig.step, revisionOf(rig.step))
  await done
  t.equal(sink.outcome, 'OK')
})
