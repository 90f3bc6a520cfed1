// needs: python

import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { silentLogger } from '@tutti/chassis'
import { RecordedResponses } from '@tutti/tensor/testing'
import t, { type Test } from 'tap'
import type { LoadedModel } from '../engine.ts'
import { executeOnce } from '../testing/execute.ts'
import { stepRequest } from '../testing/model-source.ts'
import {
  answerWith,
  bytesRequestInput,
  loadPythonModel,
  type PythonTestOptions,
  pythonConfig,
  pythonModel,
  WITHOUT_PYTHON,
} from '../testing/python-model.ts'

/** Does what the first byte of `x` orders by the name of a method, or gives `x` back where there is none. */
const OBEYS = `def execute(self, requests):
    x = pb_utils.get_input_tensor_by_name(requests[0], "x").as_numpy()
    order = getattr(self, bytes(x).decode(), None)
    if order is not None:
        return order(requests)
    return self.answer(requests)

${answerWith('x').replace('def execute', 'def answer')}
`

const AT_ONCE = { restartFirstMs: 0, restartLongestMs: 0 }
const order = (text: string) => stepRequest([bytesRequestInput(...Buffer.from(text))])

async function answerOf(model: LoadedModel, text: string): Promise<string> {
  const [response] = await executeOnce(model, [order(text)])
  if (response?.error !== undefined) return `${response.error.code}: ${response.error.message}`
  return Buffer.from(response?.outputs[0]?.data ?? []).toString()
}

/** A model whose methods are orders; restarts do not wait. */
function obeying(t: Test, methods: string, o: PythonTestOptions = {}): Promise<LoadedModel> {
  const code = pythonModel(`${OBEYS}\n${methods}`)
  return loadPythonModel(t, code, { ...o, settings: { ...AT_ONCE, ...o.settings } })
}

await t.test(
  'an exception fails every request of its batch, with Triton’s text',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const model = await obeying(
      t,
      `def boom(self, requests):
    self.deeper()

def deeper(self):
    raise ValueError("no such thing: é")

def leave(self, requests): sys.exit(4)

def library(self, requests):
    raise pb_utils.TritonModelException("said so")

def silent(self, requests): assert not requests`,
    )
    const responses = await executeOnce(model, [order('boom'), order('x'), order('y')])
    const at = String.raw`\n\nAt:\n  \S+/m/1/model.py\(\d+\): `
    for (const { error } of responses) {
      t.equal(error?.code, 'INTERNAL')
      t.match(
        error?.message ?? '',
        new RegExp(
          `^Failed to process the request\\(s\\) for model 'm_0', message: ValueError: no such thing: é${at}deeper\n  \\S+model.py\\(\\d+\\): boom\n  \\S+model.py\\(\\d+\\): execute\n$`,
        ),
      )
    }
    t.match(await answerOf(model, 'leave'), /message: SystemExit: 4\n\nAt:/)
    t.match(await answerOf(model, 'library'), /message: TritonModelException: said so\n\nAt:/)
    t.match(await answerOf(model, 'silent'), /message: AssertionError: <EMPTY MESSAGE>\n\nAt:/)
    t.equal(await answerOf(model, 'still there'), 'still there')
  },
)

await t.test(
  'what execute may not return is told with Triton’s texts',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const model = await obeying(
      t,
      `def tuple(self, requests):
    return ()

def short(self, requests):
    return []

def strange(self, requests):
    return [3]

def taken(self, requests):
    requests.clear()
    return []

def large(self, requests):
    return [pb_utils.InferenceResponse(parameters={"n": 2**63})]

def mute(self, requests):
    class Mute(Exception):
        def __str__(self):
            raise SystemExit(4)
    raise Mute()`,
    )
    const prefix = "INTERNAL: Failed to process the request(s) for model 'm_0', message: "
    const cases = [
      ['tuple', "Expected a list in the execute return, found type '<class 'tuple'>'."],
      [
        'short',
        'Number of InferenceResponse objects do not match the number of InferenceRequest objects. InferenceRequest(s) size is:1, and InferenceResponse(s) size is:0\n',
      ],
      [
        'strange',
        "Expected an 'InferenceResponse' object in the execute function return list, found type '<class 'int'>'.",
      ],
    ] as const
    for (const [name, text] of cases) t.equal(await answerOf(model, name), prefix + text)
    t.equal(await answerOf(model, 'taken'), `${prefix}${cases[1][1]}`)
    t.match(
      await answerOf(model, 'large'),
      /message: TritonModelException: Expect parameters values of type int to fit int64, found 64 bits for 'n'\n/,
    )
    t.match(
      await answerOf(model, 'mute'),
      /message: Mute: <its text failed with SystemExit>\n\nAt:\n {2}\S+model.py/,
    )
    t.equal(await answerOf(model, 'still there'), 'still there')
  },
)

await t.test(
  'an error for one request leaves the others alone',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const codes =
      'UNKNOWN INTERNAL NOT_FOUND INVALID_ARG UNAVAILABLE UNSUPPORTED ALREADY_EXISTS CANCELLED'
    const model = await loadPythonModel(
      t,
      pythonModel(`def execute(self, requests):
    codes = "${codes}".split()
    out = []
    for i, request in enumerate(requests):
        if i < len(codes):
            out.append(pb_utils.InferenceResponse(error=pb_utils.TritonError("e%d" % i, getattr(pb_utils.TritonError, codes[i]))))
        else:
            out.append(pb_utils.InferenceResponse([pb_utils.Tensor("y", np.array([i], np.uint8))]))
    return out`),
    )
    const responses = await executeOnce(
      model,
      Array.from({ length: 9 }, () => order('x')),
    )
    t.same(
      responses.map(({ error }) => error && `${error.code} ${error.message}`),
      [
        'UNKNOWN',
        'INTERNAL',
        'NOT_FOUND',
        'INVALID_ARGUMENT',
        'UNAVAILABLE',
        'UNIMPLEMENTED',
        'ALREADY_EXISTS',
        'CANCELLED',
      ]
        .map((code, i): string | undefined => `${code} e${i}`)
        .concat([undefined]),
    )
    t.same(responses[8]?.outputs[0]?.data, Buffer.from([8]))
  },
)

const ENDS = [
  ['exit', 'os._exit(3)', /it exited with status 3$/],
  [
    'killed',
    'os.kill(os.getpid(), signal.SIGKILL)',
    /it was killed \(SIGKILL\), as when memory runs out$/,
  ],
  [
    'crash',
    'os.kill(os.getpid(), signal.SIGSEGV)',
    /it was ended by SIGSEGV\n\nFatal Python error: Segmentation fault\n[^]*model.py", line \d+ in crash/,
  ],
  ['abort', 'os.abort()', /it was ended by SIGABRT\n\nFatal Python error: Aborted/],
  ['closed', 'os.closerange(3, 4096)', /it exited with status 1$/],
  [
    'garbage',
    'flood(b"garbage" * 1000)',
    /the process of the model wrote 0x6167 where a frame begins$/,
  ],
  ['mute', 'flood(b"TT" + b"\\0" * 30)', /the process of the model wrote operation 0$/],
] as const

const FLOOD = `
def flood(data):
    import socket
    for fd in range(3, 64):
        try:
            sock = socket.socket(fileno=os.dup(fd))
            if sock.family == socket.AF_UNIX:
                sock.sendall(data)
        except OSError:
            pass
    time.sleep(60)
`

for (const sharesMemory of [true, false]) {
  await t.test(
    `whatever ends the process is told, and the next request is served (memory shared: ${sharesMemory})`,
    { skip: WITHOUT_PYTHON },
    async (t) => {
      const methods = ENDS.map(
        ([name, code]) => `def ${name}(self, requests):\n    ${code}\n`,
      ).join('\n')
      const code = pythonModel(`${OBEYS}\n${methods}`, FLOOD)
      const before = await leftovers()
      const model = await loadPythonModel(t, code, { sharesMemory, settings: AT_ONCE })
      for (const [name, , text] of ENDS) {
        const answer = await answerOf(model, name)
        t.ok(answer.startsWith("INTERNAL: Stub process 'm_0' is not healthy: "), answer)
        t.match(answer, text)
        t.equal(await answerOf(model, 'next'), 'next')
      }
      await model.close()
      t.same(await leftovers(), before, 'nothing is left in /dev/shm')
    },
  )
}

/** Other programs have files there, too. */
async function leftovers(): Promise<readonly string[]> {
  const names = await readdir('/dev/shm').catch(() => [])
  return names.filter((name) => name.includes('tutti'))
}

await t.test(
  'all requests of a crash fail, those that come meanwhile wait',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const model = await obeying(t, 'def exit(self, requests):\n    os._exit(1)')
    const crashed = executeOnce(model, [order('exit'), order('a'), order('b')])
    for (const { error } of await crashed) t.equal(error?.reason, 'ENGINE_STOPPED')
    const [later, latest] = await Promise.all([answerOf(model, 'c'), answerOf(model, 'd')])
    t.same([later, latest], ['c', 'd'])
  },
)

await t.test(
  'an endless loop ends some time after its last caller has left',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const model = await obeying(t, 'def spin(self, requests):\n    while True:\n        pass', {
      settings: { abandonedMs: 50 },
    })
    const abort = new AbortController()
    const sink = new RecordedResponses()
    const batch = [{ request: order('spin'), sink }]
    const execution = model.execute(batch, { instance: 0, signal: abort.signal })
    abort.abort()
    await execution
    t.same(
      sink.responses.map(({ error }) => error?.message),
      [
        "Stub process 'm_0' is not healthy: it still executed 0.05 s after the last caller had left",
      ],
    )
    t.equal(await answerOf(model, 'next'), 'next')
  },
)

await t.test(
  'outputs beyond the bound of the memory are that execution’s error',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    for (const sharesMemory of [true, false]) {
      const code = pythonModel(answerWith('np.zeros(int(x[0]) * 100_000, np.uint8)'))
      const model = await loadPythonModel(t, code, {
        sharesMemory,
        settings: { arenaBytes: 1_048_576 },
      })
      const size = async (factor: number) => {
        const [response] = await executeOnce(model, [stepRequest([bytesRequestInput(factor)])])
        return response?.error?.message ?? response?.outputs[0]?.data.length
      }
      t.equal(await size(10), 1_000_000)
      t.equal(
        await size(20),
        "Failed to process the request(s) for model 'm_0', message: the tensors take 2000000 bytes, want at most 1048576",
      )
      t.equal(await size(10), 1_000_000)
    }
  },
)

await t.test('what a model started ends with its process', { skip: WITHOUT_PYTHON }, async (t) => {
  const model = await obeying(
    t,
    `def exit(self, requests):
    import subprocess
    one = subprocess.Popen(["sleep", "600"])
    two = subprocess.Popen(["sleep", "600"], start_new_session=True)
    if os.fork() == 0:
        time.sleep(600)
    print("started", one.pid, two.pid, flush=True)
    os._exit(0)

def pids(self, requests):
    data = open("/proc/%d/task/%d/children" % (os.getppid(), os.getppid())).read()
    return [pb_utils.InferenceResponse([pb_utils.Tensor("y", np.frombuffer(data.encode(), np.uint8))])]`,
  )
  t.match(await answerOf(model, 'exit'), /it exited with status 0/)
  const pids = (await answerOf(model, 'pids')).trim().split(' ')
  t.equal(pids.length, 1, 'the zygote has no other child than the new instance')
})

await t.test(
  'a None without a response is an error for its request alone',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const model = await loadPythonModel(
      t,
      pythonModel(`def execute(self, requests):
    return [None, *[pb_utils.InferenceResponse([pb_utils.Tensor("y", np.array([7], np.uint8))]) for _ in requests[1:]]]`),
    )
    const [first, second] = await executeOnce(model, [order('a'), order('b')])
    t.equal(first?.error?.reason, 'RESPONSE_INVALID')
    t.match(first?.error?.message, /let go of a request without a final response/)
    t.same(second?.outputs[0]?.data, Buffer.from([7]))
  },
)

await t.test(
  'waits before restarts grow, and the limit of the log holds',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const lines: Record<string, unknown>[] = []
    const log = {
      ...silentLogger,
      info: (message: string, fields?: object) => void lines.push({ message, ...fields }),
      warn: (message: string, fields?: object) => void lines.push({ message, ...fields }),
    }
    const model = await obeying(
      t,
      `def exit(self, requests):
    os._exit(0)

def noisy(self, requests):
    for i in range(5000):
        print("line", i)
    print("x" * 10_000, file=sys.stderr)
    return self.answer(requests)`,
      { log, settings: { restartFirstMs: 1, restartLongestMs: 3 } },
    )
    for (let i = 0; i < 4; i += 1) await answerOf(model, 'exit')
    t.same(
      lines
        .filter(({ message }) => message === 'instance ended, restarting')
        .map((l) => l['restartInMs']),
      [1, 2, 3, 3],
    )
    await answerOf(model, 'noisy')
    await model.close()
    const output = lines.filter(({ message }) => message === 'model output')
    t.match(output[0], {
      model: 'm',
      version: '1',
      instance: 'm_0',
      stream: 'stdout',
      line: 'line 0',
    })
    t.ok(output.length >= 1000 && output.length < 3000, `${output.length} of 5001 lines`)
  },
)

const finalize = (body: string) =>
  pythonModel(`${answerWith('x')}\n\ndef finalize(self):\n    ${body}`)

await t.test(
  'finalize runs at the end; one that fails or hangs is no obstacle',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const lines: string[] = []
    const log = {
      ...silentLogger,
      info: (message: string, fields?: Record<string, unknown>) =>
        void lines.push(`${message} ${String(fields?.['line'])}`),
      error: (message: string, fields?: Record<string, unknown>) =>
        void lines.push(`${message} ${String(fields?.['problem'])}`),
    }
    for (const body of ['print("bye")', 'raise KeyError("k")', 'time.sleep(600)']) {
      const model = await loadPythonModel(t, finalize(body), { log, settings: { finalizeMs: 300 } })
      await model.close()
    }
    t.match(lines, [/^model output bye$/, /^finalize failed KeyError: 'k'\n\nAt:\n/])
  },
)

await t.test(
  'a model that is closed answers what still comes',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const model = await loadPythonModel(t, pythonModel(answerWith('x')), { config: pythonConfig() })
    await model.close()
    const [response] = await executeOnce(model, [order('x')])
    t.equal(response?.error?.reason, 'ENGINE_STOPPED')
  },
)

await t.test(
  'the working folder of an instance is gone with it',
  { skip: WITHOUT_PYTHON },
  async (t) => {
    const model = await obeying(
      t,
      `def where(self, requests):
    open("file", "w").write("x")
    os.mkdir("folder")
    return [pb_utils.InferenceResponse([pb_utils.Tensor("y", np.frombuffer(os.getcwd().encode(), np.uint8))])]

def exit(self, requests):
    os._exit(1)`,
    )
    const first = await answerOf(model, 'where')
    t.ok(existsSync(`${first}/folder`))
    await answerOf(model, 'exit')
    const second = await answerOf(model, 'where')
    t.notOk(existsSync(first), 'after a crash')
    await model.close()
    t.notOk(existsSync(second), 'after the end')
  },
)
