// needs: triton, python
import { testFactor, testSeed } from '@tutti/chassis/testing'
import t, { type Test } from 'tap'
import { createRandom } from '../attacks/random.ts'
import { unaccepted } from './accepted.ts'
import type { Case } from './case.ts'
import { compare } from './compare.ts'
import { MISUSES, pythonCase, pythonFiles, requestOf, VALUES } from './generate/python-cases.ts'
import { listByKind } from './report.ts'
import { startTriton, startTuttiServer } from './servers.ts'

t.setTimeout(600_000)

const { TUTTI_TRITON: program, TUTTI_TRITON_MISSING: reason } = process.env
const skip = program === undefined ? (reason ?? 'TUTTI_TRITON is not set') : false
const RANDOM_CASES = 10 * testFactor()
const SEED = testSeed()

interface Scripted {
  readonly what: string
  /** The methods of the model. */
  readonly code: string
  readonly isDecoupled?: boolean
  /** Further models of the case. */
  readonly files?: Readonly<Record<string, string>>
  /** The texts that the model answers with. */
  readonly want: readonly string[] | RegExp
}

/** Answers once four calls have begun. */
const GATE = `BEGUN = threading.Semaphore(0)


class TritonPythonModel:
    def execute(self, requests):
        for request in requests:
            BEGUN.release()
            threading.Thread(target=self.answer, args=(request.get_response_sender(),)).start()

    def answer(self, sender):
        while BEGUN._value < 4:
            time.sleep(0.002)
        for one in ("a", "b"):
            sender.send(response(one))
        sender.send(flags=FINAL)
`

const CASES: readonly Scripted[] = [
  {
    what: 'tasks go on when an asynchronous execute has returned',
    code: `    async def execute(self, requests):
        KEPT.extend(asyncio.create_task(self.answer(r.get_response_sender())) for r in requests)

    async def answer(self, sender):
        await asyncio.sleep(0.05)
        sender.send(response("late"), FINAL)`,
    want: ['late'],
  },
  {
    what: 'a model may return None and answer by senders',
    code: `    def execute(self, requests):
        for request in requests:
            request.get_response_sender().send(response("sent"), FINAL)`,
    want: ['sent'],
  },
  {
    what: 'calls to a decoupled model resolve with their first response',
    code: `    async def execute(self, requests):
        said = await asyncio.gather(*[self.read() for _ in range(4)])
        return [response(*said) for _ in requests]

    async def read(self):
        made = call("py_gate", "X", np.zeros(1, np.int32), "Y")
        return [[b"".join(t.as_numpy()).decode() for t in one.output_tensors()] for one in await made.async_exec(decoupled=True)]`,
    files: pythonFiles('py_gate', GATE, true),
    want: Array.from({ length: 4 }, () => "[['a'], ['b'], []]"),
  },
  {
    what: 'an exception after the final response changes nothing',
    isDecoupled: true,
    code: `    async def execute(self, requests):
        for request in requests:
            request.get_response_sender().send(response("done"), FINAL)
        raise KeyError("late")`,
    want: ['done'],
  },
  {
    what: 'what the coroutine of a decoupled model returns counts for nothing',
    isDecoupled: true,
    code: `    async def execute(self, requests):
        for request in requests:
            sender = request.get_response_sender()
            asyncio.get_running_loop().call_later(0.02, lambda: sender.send(response("sent"), FINAL))
        return [5]`,
    want: ['sent'],
  },
  {
    what: 'the command line of a model is empty',
    code: `    def execute(self, requests):
        return [response(sys.argv) for _ in requests]`,
    want: ["['']"],
  },
  {
    what: 'arguments of the library, right and wrong, raise the same classes',
    code: `    def execute(self, requests):
        request = requests[0]
        return [response(${MISUSES.flatMap((one) => VALUES.map((value) => `kind(lambda: ${one.replace('VALUE', value)})`)).join(',\n            ')})]`,
    want: /TypeError/,
  },
  {
    what: 'a thread of the model calls others while nothing executes, and initialize may not',
    code: `    def initialize(self, args):
        self.early = kind(lambda: told(scalar(1.0).exec()))
        threading.Thread(target=background, daemon=True).start()

    def execute(self, requests):
        if EXECUTED.is_set():
            waited()
        EXECUTED.set()
        return [response(self.early, *KEPT) for _ in requests]`,
    want: ['TritonModelException', '2.0'],
  },
  {
    what: 'a model that takes its time to start is loaded',
    code: `    @staticmethod
    def auto_complete_config(config):
        time.sleep(1.5)
        return config

    def initialize(self, args):
        time.sleep(1.5)

    def execute(self, requests):
        return [response("there") for _ in requests]`,
    want: ['there'],
  },
]

/** Says how many classes its version has, and finds it in the configuration that it gets. */
const classes = (count: number): string => `class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        config.add_output({"name": "Z", "data_type": "TYPE_FP32", "dims": [${count}]})
        return config

    def initialize(self, args):
        import json
        outputs = json.loads(args["model_config"])["output"]
        self.dims = [one["dims"] for one in outputs if one["name"] == "Z"]

    def execute(self, requests):
        return [response(self.dims) for _ in requests]
`

/** Two versions of a model that are served, and two of which the first is broken and not served. */
function versionsCase(): Case {
  const both = pythonFiles('py_both', classes(3))
  const retrained = pythonFiles('py_retrained', classes(5))
  const later = (name: string): string => pythonFiles(name, classes(5))[`${name}/1/model.py`] ?? ''
  const calls = [
    ['py_both', '2'],
    ['py_both', ''],
    ['py_both', '1'],
    ['py_retrained', '1'],
    ['py_retrained', ''],
    ['py_retrained', '2'],
  ].flatMap(([name = '', version]) => [
    { rpc: 'ModelMetadata', requests: [{ name, version }] },
    { rpc: 'ModelConfig', requests: [{ name, version }] },
    {
      rpc: 'ModelInfer',
      requests: [{ ...requestOf(name, 1), model_version: version, outputs: [{ name: 'Y' }] }],
    },
  ])
  return {
    id: 'py_versions',
    files: {
      ...both,
      'py_both/config.pbtxt': `${both['py_both/config.pbtxt']}version_policy { all { } }\n`,
      'py_both/2/model.py': later('py_both'),
      ...retrained,
      'py_retrained/1/model.py': 'raise RuntimeError("broken")\n',
      'py_retrained/2/model.py': later('py_retrained'),
    },
    calls: [
      ...['py_both', 'py_retrained'].map((name) => ({
        rpc: 'RepositoryModelLoad',
        requests: [{ model_name: name }],
      })),
      ...calls,
    ],
  }
}

function caseOf({ code, isDecoupled = false, files = {} }: Scripted, index: number): Case {
  const name = `py_case_${index}`
  const loads = [...Object.keys(files), `${name}/`].map((path) => path.split('/')[0] ?? '')
  const own = pythonFiles(name, `class TritonPythonModel:\n${code}\n`, isDecoupled)
  return {
    id: name,
    files: { ...files, ...own },
    calls: [
      ...[...new Set(loads)].map((model) => ({
        rpc: 'RepositoryModelLoad',
        requests: [{ model_name: model }],
      })),
      ...Array.from({ length: 2 }, () => ({
        rpc: isDecoupled ? 'ModelStreamInfer' : 'ModelInfer',
        requests: [requestOf(name, 1)],
        isUnordered: true,
      })),
    ],
  }
}

/** The texts of the outputs in an answer. */
function textsOf(answer: unknown): readonly string[] {
  const texts: string[] = []
  JSON.stringify(answer, (key, value: unknown) => {
    if (key !== 'raw_output_contents' || !Array.isArray(value)) return value
    for (const one of value) {
      const bytes = Buffer.from(String(one), 'base64')
      for (let at = 0; at < bytes.length; at += 4 + bytes.readUInt32LE(at)) {
        texts.push(bytes.toString('utf8', at + 4, at + 4 + bytes.readUInt32LE(at)))
      }
    }
    return value
  })
  return texts
}

await t.test('what Python models do is what they do in a real Triton', { skip }, async (t) => {
  const [triton, tutti] = await Promise.all([startTriton(t, program ?? ''), startTuttiServer(t)])
  const run = async (t: Test, test: Case) => {
    const [wanted, found] = await Promise.all([triton.run(test), tutti.run(test)])
    // It has ended Triton.
    if (wanted === undefined) return undefined
    const differences = unaccepted(test, compare(test, wanted, found))
    t.equal(differences.length === 0 ? '' : listByKind([{ test, differences }]), '', test.id)
    return [wanted, found].map((answers) => textsOf(answers.at(-1)))
  }
  for (const [index, scripted] of CASES.entries()) {
    await t.test(scripted.what, async (t) => {
      const texts = await run(t, caseOf(scripted, index))
      t.ok(texts, 'Triton has answered')
      for (const each of texts ?? []) {
        if (scripted.want instanceof RegExp) t.match(each.join(' '), scripted.want)
        else t.same(each, scripted.want)
      }
    })
  }
  await t.test('each version says its own configuration', async (t) => {
    t.same(await run(t, versionsCase()), [['[[5]]'], ['[[5]]']])
  })
  await t.test(`${RANDOM_CASES} random models, seed ${SEED}`, async (t) => {
    for (let i = 0; i < RANDOM_CASES; i += 1) {
      const random = createRandom(SEED + i)
      await run(t, { id: `python-${SEED + i}`, ...pythonCase(SEED + i, random) })
    }
  })
})
