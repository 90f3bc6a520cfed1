import assert from 'node:assert/strict'
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './check-surroundings.mjs'
import { descendantsOf, waitFor } from './pod-runner.mjs'

/** Files that an image must not have: of tests, of compilers, of other platforms, and what the machine that built it lent. */
const STRAY = [
  '*.test.*',
  '*.d.ts',
  '*.map',
  '*/testing/*.js',
  '*/src/*.ts',
  '*/node_modules/@types/*',
  '*/napi-v6/darwin/*',
  '*/napi-v6/win32/*',
  '*/node_modules/typescript/*',
  '*/node_modules/tap/*',
].map((path) => `/app/${path}`)
const LENT = [
  '/usr/local/etc/npmrc',
  '/etc/pip.conf',
  '/etc/apt/apt.conf.d/99lent',
  '/var/lib/apt/lists/*_Packages',
]
const RUNTIME = '/app/node_modules/onnxruntime-node'

async function holdsOnly({ start }, hasRuntime) {
  const paths = [...STRAY, ...LENT].map((path) => `-path '${path}'`).join(' -o ')
  const stray = await outputOf(
    start,
    `find /app /etc /usr/local /var/lib/apt -type f -size +0 '(' ${paths} ')' 2>/dev/null; true`,
  )
  assert.equal(stray.trim(), '', 'stray files')
  const runtime = await outputOf(start, `test -e ${RUNTIME} && echo yes || echo no`)
  assert.equal(runtime.trim(), hasRuntime ? 'yes' : 'no', 'ONNX Runtime')
}

async function hasSbom({ start }, wanted) {
  const { packages } = JSON.parse(await outputOf(start, 'cat /app/sbom.spdx.json'))
  const names = packages.map(({ name }) => name)
  for (const name of ['node', 'libc6', 'tini', ...wanted]) assert.ok(names.includes(name), name)
}

async function isReadOnly({ start }) {
  const folders = '/ /app /etc /usr /var /tmp'
  const script = `id -u; id -g; for at in ${folders}; do touch "$at/x" 2>/dev/null && echo "$at"; done; true`
  assert.equal(await outputOf(start, script), '65532\n65532\n/tmp\n')
}

async function outputOf(start, script) {
  const pod = start({ command: ['/bin/sh', '-c', script] })
  const code = await pod.ended
  assert.equal(code, 0, pod.written())
  return pod.written()
}

/** Starts a program, waits until a probe answers, asks, ends it by SIGTERM. */
async function serve(start, { command, env, volumes, probe }, ask = async () => {}) {
  const pod = start({ command, env, volumes })
  try {
    await waitFor(`${command[0]} does not answer ${probe}`, async () => {
      assert.equal(pod.end(), undefined, 'it ended')
      return await answers(probe)
    })
    await ask(pod)
    pod.terminate()
    await waitFor(`${command[0]} does not end after SIGTERM`, () => pod.end() !== undefined, 60_000)
    assert.equal(pod.end(), 0)
  } catch (error) {
    error.message += `\n${pod.written().slice(-4000)}`
    throw error
  } finally {
    await pod.close()
  }
}

async function answers(url) {
  try {
    return (await fetch(url)).status === 200
  } catch {
    // Not listening yet.
    return false
  }
}

async function doors() {
  const [grpc, http, metrics] = [await freePort(), await freePort(), await freePort()]
  const names = Object.entries({ grpc, http, metrics })
  const flags = names.flatMap(([name, port]) => [
    `--${name}-address=127.0.0.1`,
    `--${name}-port=${port}`,
  ])
  return { flags, http: `http://127.0.0.1:${http}`, probe: `http://127.0.0.1:${metrics}/readyz` }
}

async function infer(door, model, inputs) {
  const response = await fetch(`${door.http}/v2/models/${model}/infer`, {
    method: 'POST',
    body: JSON.stringify({ inputs }),
  })
  const answer = await response.json()
  assert.equal(response.status, 200, JSON.stringify(answer))
  return answer.outputs[0]
}

/** It looks for its cluster as long as it lives; probes are answered meanwhile. */
async function operatorStarts({ start }) {
  const folder = mkdtempSync(join(tmpdir(), 'tutti-images-'))
  const cluster = { server: 'https://127.0.0.1:9', 'insecure-skip-tls-verify': true }
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'none',
    clusters: [{ name: 'none', cluster }],
    users: [{ name: 'none', user: { token: 'none' } }],
    contexts: [{ name: 'none', context: { cluster: 'none', user: 'none' } }],
  }
  // The user of the image is another than ours.
  chmodSync(folder, 0o755)
  writeFileSync(join(folder, 'config'), JSON.stringify(config))
  const [health, metrics] = [await freePort(), await freePort()]
  try {
    await serve(start, {
      command: [
        'tutti-operator',
        `--health-port=${health}`,
        `--metrics-port=${metrics}`,
        '--nats=nats://127.0.0.1:9',
      ],
      env: { KUBECONFIG: '/kube/config' },
      volumes: [{ source: folder, target: '/kube' }],
      probe: `http://127.0.0.1:${health}/livez`,
    })
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function routerIsReady({ start, broker, root }) {
  const door = await doors()
  await serve(start, {
    command: ['tutti-router', '--model-repository=/models', `--nats=${broker.url}`, ...door.flags],
    volumes: [{ source: join(root, 'model_repository'), target: '/models' }],
    probe: door.probe,
  })
}

async function stepServesOnnx({ start, broker, root }) {
  const door = await doors()
  const command = [
    'tutti-step',
    '--model-repository=/models',
    '--model=text_recognition',
    `--nats=${broker.url}`,
  ]
  const volumes = [{ source: join(root, 'model_repository'), target: '/models' }]
  await serve(
    start,
    { command: [...command, ...door.flags], volumes, probe: door.probe },
    async () => {
      const picture = {
        name: 'INPUT__0',
        datatype: 'FP32',
        shape: [1, 1, 32, 100],
        data: Array(3200).fill(0),
      }
      assert.deepEqual((await infer(door, 'text_recognition', [picture])).shape, [1, 26, 37])
    },
  )
}

async function stepServesPython({ start, broker, root }) {
  const door = await doors()
  const command = [
    'tutti-step',
    '--model-directory=detection_preprocessing=/models/detection_preprocessing',
    '--model-directory=pre_gfpgan=/models/.variants/torchscript/pre_gfpgan',
    `--nats=${broker.url}`,
  ]
  const volumes = [{ source: join(root, 'model_repository'), target: '/models' }]
  await serve(
    start,
    { command: [...command, ...door.flags], volumes, probe: door.probe },
    async (pod) => {
      const file = [...readFileSync(join(root, 'model_repository/.samples/words.jpg'))]
      const words = {
        name: 'detection_preprocessing_input',
        datatype: 'UINT8',
        shape: [1, file.length],
        data: file,
      }
      assert.equal((await infer(door, 'detection_preprocessing', [words])).shape.length, 4)
      const picture = {
        name: 'input__0',
        datatype: 'UINT8',
        shape: [4, 6, 3],
        data: Array(72).fill(7),
      }
      assert.deepEqual((await infer(door, 'pre_gfpgan', [picture])).shape, [1, 3, 4, 6])
      await leavesNoZombies(pod)
    },
  )
}

/** Whoever forks the instances is killed; process 1 inherits what it leaves behind. Not with docker, whose processes are not ours to see. */
async function leavesNoZombies(pod) {
  const one = pod.processOne()
  if (one === undefined) return
  const [forks, ...instances] = descendantsOf(one).filter(({ program }) => /python/.test(program))
  assert.ok(instances.length > 0, 'no Python instances')
  process.kill(forks.pid, 'SIGKILL')
  await waitFor('processes that have ended are not reaped', () => {
    const now = descendantsOf(one)
    return !now.some(({ pid, isZombie }) => isZombie || pid === forks.pid)
  })
}

async function importsPackages({ start }) {
  const script =
    'python3 -c "import cv2, numpy, PIL.Image, torch; print(cv2.__version__, numpy.__version__, torch.__version__)"'
  await outputOf(start, script)
}

const ALL = (hasRuntime, packages) => [
  ['holds only what it runs', (o) => holdsOnly(o, hasRuntime)],
  ['the list of its packages', (o) => hasSbom(o, packages)],
  ['read-only root, numeric user', isReadOnly],
]

/** What is checked of each image: a sentence, and what throws if it is not true. */
export const CHECKS = {
  operator: [
    ...ALL(false, ['@kubernetes/client-node']),
    ['starts, and ends by SIGTERM', operatorStarts],
  ],
  router: [...ALL(false, ['@grpc/grpc-js']), ['is ready, and ends by SIGTERM', routerIsReady]],
  step: [...ALL(true, ['onnxruntime-node']), ['serves an ONNX model', stepServesOnnx]],
  'step-python': [
    ...ALL(true, ['onnxruntime-node', 'python3-torch', 'python3-numpy']),
    ['imports its packages', importsPackages],
    ['serves an ONNX model', stepServesOnnx],
    ['serves Python and TorchScript models, and reaps orphans', stepServesPython],
  ],
}
