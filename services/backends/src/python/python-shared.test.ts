// needs: python
import type { NamedTensor } from '@tutti/tensor'
import { RecordedResponses } from '@tutti/tensor/testing'
import t from 'tap'
import { executeOnce } from '../testing/execute.ts'
import { pythonConfig, pythonModel, WITHOUT_PYTHON } from '../testing/python-model.ts'
import { ScriptedHost } from '../testing/scripted-host.ts'
import {
  ALL,
  answerOf,
  answersOf,
  loadShared,
  order,
  SHARED_CODE,
  SHARED_HEAD,
  whoAnswers,
} from '../testing/shared-model.ts'

await t.test(
  'instances are threads of one process, which imports the model once and initializes them in turn',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    for (const sharesMemory of [true, false]) {
      const answers = await whoAnswers(await loadShared(t, SHARED_CODE, { sharesMemory }))
      const names = ['m_0', 'm_1', 'm_2', 'm_3']
      t.same(
        answers.map(({ instance }) => instance),
        names,
      )
      t.equal(new Set(answers.map(({ pid }) => pid)).size, 1)
      t.equal(new Set(answers.map(({ thread }) => thread)).size, 4)
      for (const answer of answers) {
        const { pid: _, instance: __, thread: ___, importer, ...rest } = answer
        t.same(rest, { own: true, imports: 1, instances: names, dir: '/m/1' })
        t.equal(importer, answers[0]?.thread)
      }
    }
    const apart = await loadShared(t, SHARED_CODE, { load: { sharesInterpreter: false } })
    t.equal(new Set((await whoAnswers(apart)).map(({ pid }) => pid)).size, 4)
    const one = await loadShared(t, SHARED_CODE, { load: { instances: 1 } })
    t.match(JSON.parse(await answerOf(one, 'who')), { instances: ['m_0'], own: true })
  },
)

await t.test('all execute at the same time', { skip: WITHOUT_PYTHON }, async (t) => {
  const model = await loadShared(t)
  for (let i = 0; i < 3; i += 1)
    t.same(
      await answersOf(model, 'meet'),
      ALL.map(() => 'met'),
    )
})

/** Gives its input back. */
async function* echo({ inputs }: { readonly inputs: readonly NamedTensor[] }) {
  const data = inputs[0]?.data ?? new Uint8Array(0)
  const shape = [data.length]
  yield await Promise.resolve({ outputs: [{ name: 'b', datatype: 'UINT8' as const, shape, data }] })
}

const UNKNOWN =
  "exec: which instance calls is not known in this thread, which the model has started in a process that instances share. Make the request in 'execute', or run the thread's function in contextvars.copy_context()"

await t.test(
  'a call to another model is for the request of its own instance, from its threads too',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const host = new ScriptedHost()
    host.models.set('echo', echo)
    const model = await loadShared(t, SHARED_CODE, { load: { host } })
    const requests = ALL.map(() => order('bls'))
    const answers = await Promise.all(
      requests.map((request, instance) => executeOnce(model, [request], instance)),
    )
    for (const [answer] of answers) {
      t.equal(answer?.error, undefined)
      const text = Buffer.from(answer?.outputs[0]?.data ?? []).toString()
      t.same(JSON.parse(text), [1, 1, 1, UNKNOWN])
    }
    for (const request of requests) {
      const calls = host.calls.filter(({ options }) => options.caller === request)
      t.equal(calls.length, 3)
      t.same(calls.map(({ options }) => options.traced).filter(Boolean), [request])
    }
    const alone = await loadShared(t, SHARED_CODE, { load: { host, instances: 1 } })
    t.same(JSON.parse(await answerOf(alone, 'bls')), [1, 1, 1, 1])
  },
)

await t.test(
  'what was made for one instance and is called by another has not the other’s trace',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const host = new ScriptedHost()
    host.models.set('echo', echo)
    const model = await loadShared(t, SHARED_CODE, { load: { host } })
    t.equal(await answerOf(model, 'keep', 0), 'kept')
    const request = order('use')
    // The first request of either process: they have the same key.
    const [response] = await executeOnce(model, [request], 1)
    t.same(response?.outputs[0]?.data, Buffer.from('1'))
    t.equal(host.calls[0]?.options.caller, request)
    t.equal(host.calls[0]?.options.traced, undefined)
  },
)

await t.test(
  'coroutines of several instances run at the same time, each in a loop of its own',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const host = new ScriptedHost()
    host.models.set('echo', echo)
    const code = pythonModel(
      `async def execute(self, requests):
    loop = asyncio.get_running_loop()
    LOOPS.add(id(loop))
    while len(LOOPS) < 4:
        await asyncio.sleep(0.001)
    responses = await asyncio.gather(*[call("echo", i).async_exec() for i in range(3)])
    return [told([got(response) for response in responses])]`,
      `${SHARED_HEAD}\nLOOPS = set()`,
    )
    const model = await loadShared(t, code, { load: { host } })
    t.same(
      await answersOf(model, 'x'),
      ALL.map(() => '[0, 1, 2]'),
    )
  },
)

const STREAMING = pythonModel(
  `def initialize(self, args):
    self.number = int(args["model_instance_name"][-1])

def execute(self, requests):
    for request in requests:
        threading.Thread(target=self.stream, args=(request.get_response_sender(),)).start()

def stream(self, sender):
    n = 0
    while not sender.is_cancelled():
        sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("y", np.array([self.number, n % 256], np.uint8))]))
        n += 1
        time.sleep(0.001)
    ENDED.append(self.number)
    sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("y", np.array(ENDED, np.uint8))]), 1)`,
  'ENDED = []',
)

await t.test(
  'senders stream to their own requests, and a cancellation reaches its own alone',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const config = pythonConfig({ model_transaction_policy: { decoupled: true } })
    const model = await loadShared(t, STREAMING, { config })
    const streams = ALL.map((instance) => {
      const sink = new RecordedResponses()
      const third = Promise.withResolvers<void>()
      const send = (response: Parameters<typeof sink.send>[0]): void => {
        sink.send(response)
        if (sink.responses.length === 3) third.resolve()
      }
      let abandon: ((request: number) => void) | undefined
      const { signal } = new AbortController()
      const batch = [{ request: order('x'), sink: { send, fail: sink.fail.bind(sink) } }]
      const onAbandon = (listener: (request: number) => void): void => {
        abandon = listener
      }
      const done = model.execute(batch, { instance, signal, onAbandon })
      return { sink, done, third: third.promise, abandon: () => abandon?.(0) }
    })
    await Promise.all(streams.map(({ third }) => third))
    const ended: number[] = []
    for (const [instance, { sink, done, abandon }] of streams.entries()) {
      abandon()
      await done
      ended.push(instance)
      const values = sink.responses.map(({ outputs }) => [...(outputs[0]?.data ?? [])])
      t.same(values.at(-1), ended, 'those that were cancelled before it, and itself')
      t.same(
        values.slice(0, -1),
        values.slice(0, -1).map((_, n) => [instance, n % 256]),
      )
    }
  },
)
