// needs: python
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLogger } from '@tutti/chassis'
import { RecordedResponses } from '@tutti/tensor/testing'
import t from 'tap'
import { held, settles, WITHOUT_CHURN } from '../testing/python-churn.ts'
import { pythonModel, WITHOUT_PYTHON } from '../testing/python-model.ts'
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

function recordingLog() {
  const lines: { message: string; fields: Record<string, unknown> }[] = []
  const record = (message: string, fields: Record<string, unknown> = {}): void =>
    void lines.push({ message, fields })
  return { lines, log: { ...silentLogger, info: record, warn: record } }
}

await t.test(
  'whatever ends the process ends the requests of all its instances, and another one serves the next',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const model = await loadShared(t)
    const other = await loadShared(t)
    const [others] = await whoAnswers(other)
    for (const [name, how] of [
      ['exit', /^it exited with status 3$/],
      ['kill', /^it was killed \(SIGKILL\), as when memory runs out$/],
      [
        'crash',
        /^it was ended by SIGSEGV\n\nFatal Python error: Segmentation fault\n[^]*model.py", line \d+ in crash/,
      ],
    ] as const) {
      const before = (await whoAnswers(model))[0]?.pid
      const open = ([0, 2, 3] as const).map((instance) => answerOf(model, 'sleep', instance))
      const answers = [await answerOf(model, name, 1), ...(await Promise.all(open))]
      for (const [i, instance] of [1, 0, 2, 3].entries()) {
        const prefix = `!Stub process 'm_${instance}' is not healthy: `
        t.ok(answers[i]?.startsWith(prefix), answers[i] ?? 'none')
        t.match(answers[i]?.slice(prefix.length), how)
      }
      const after = await whoAnswers(model)
      t.equal(new Set(after.map(({ pid }) => pid)).size, 1)
      t.not(after[0]?.pid, before)
      t.equal(after[0]?.instances.length, 4)
    }
    t.equal((await whoAnswers(other))[0]?.pid, others?.pid, 'another model has its process')
  },
)

await t.test(
  'an endless loop that no caller waits for ends the process, and all are told why',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const model = await loadShared(t, SHARED_CODE, { settings: { abandonedMs: 50 } })
    const sleeping = answerOf(model, 'sleep', 3)
    const abort = new AbortController()
    const sink = new RecordedResponses()
    const batch = [{ request: order('spin'), sink }]
    const execution = model.execute(batch, { instance: 0, signal: abort.signal })
    abort.abort()
    await execution
    const why = 'is not healthy: it still executed 0.05 s after the last caller had left'
    t.equal(sink.responses[0]?.error?.message, `Stub process 'm_0' ${why}`)
    t.equal(await sleeping, `!Stub process 'm_3' ${why}`)
    t.equal((await whoAnswers(model))[0]?.instances.length, 4)
  },
)

await t.test(
  'each instance is finalized, and lines name who wrote them',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const { lines, log } = recordingLog()
    const model = await loadShared(t, SHARED_CODE, { log })
    await answersOf(model, 'log')
    await model.close()
    const logged = lines.filter(({ message }) => message === 'model log')
    t.same(
      new Set(
        logged.map(({ fields }) => `${String(fields['text'])} (${String(fields['instance'])})`),
      ),
      new Set(ALL.flatMap((i) => [`from m_${i} (m_${i})`, `a thread of m_${i} (m_0)`])),
    )
    const printed = lines.filter(({ message }) => message === 'model output')
    t.same(
      printed.map(({ fields }) => String(fields['line'])).toSorted((a, b) => (a < b ? -1 : 1)),
      ALL.map((i) => `bye m_${i}`),
    )
    for (const { fields } of printed) t.equal(fields['instance'], 'm_0..m_3')
  },
)

await t.test(
  'an instance that does not start ends the process, and its error is told for all',
  { skip: WITHOUT_CHURN },
  async (t) => {
    const directory = await mkdtemp(join(tmpdir(), 'tutti-'))
    t.teardown(() => rm(directory, { recursive: true }))
    const failing = join(directory, 'failing')
    const code = pythonModel(
      `def initialize(self, args):
    self.name = args["model_instance_name"]
    if self.name == open(${JSON.stringify(failing)}).read():
        raise ValueError("not " + self.name)

def execute(self, requests):
    if pb_utils.get_input_tensor_by_name(requests[0], "x").as_numpy()[0] == ord("e"):
        os._exit(1)
    return [told(self.name)]`,
      SHARED_HEAD,
    )
    const load = { instances: 12 }
    await writeFile(failing, '')
    const model = await loadShared(t, code, { load })
    const before = await held()
    await writeFile(failing, 'm_10')
    await t.rejects(loadShared(t, code, { load }), {
      reason: 'MODEL_LOAD_FAILED',
      message: /^ValueError: not m_10\n\nAt:/,
    })
    await settles(t, before, 'a load that failed')
    t.match(await answerOf(model, 'exit', 3), /it exited with status 1/)
    // Those before it may serve for a moment.
    for (const instance of [10, 11]) {
      const error = /^!the model cannot be started again: ValueError: not m_10\n/
      t.match(await answerOf(model, 'who', instance), error)
    }
    await writeFile(failing, '')
    for (const instance of [10, 0, 11]) {
      let answer = '!'
      while (answer.startsWith('!')) answer = await answerOf(model, 'who', instance)
      t.equal(answer, `m_${instance}`)
    }
  },
)

await t.test(
  'loads, unloads and crashes leave nothing behind',
  { skip: WITHOUT_CHURN },
  async (t) => {
    const first = await loadShared(t)
    await answersOf(first, 'meet')
    await first.close()
    const before = await held()
    for (let i = 0; i < 20; i += 1) await (await loadShared(t)).close()
    await settles(t, before, '20 loads and unloads')
    const model = await loadShared(t)
    await answersOf(model, 'meet')
    const loaded = await held()
    t.match(loaded, { arenas: before.arenas + 4, instances: before.instances + 1 })
    for (let i = 0; i < 10; i += 1) {
      t.match(
        await answerOf(model, i % 2 === 0 ? 'kill' : 'exit', i % 4),
        /Stub process 'm_\d' is not healthy/,
      )
    }
    await answersOf(model, 'meet')
    await settles(t, loaded, '10 crashes')
    await model.close()
    await settles(t, before, 'the end')
  },
)
