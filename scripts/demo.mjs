// README's first command: serves model_repository/, restores a degraded picture over gRPC and shows where the time went.
import { spawn } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'
import { InferenceClient } from '@tutti/protocol'
import { PNG } from 'pngjs'

const ENSEMBLE = 'ens_face_restoration_v2.1'
const STEPS = ['pre_gfpgan', 'infer_face_restoration_v2.1', 'post_gfpgan']
const OUT = 'out'

const { values: flags } = parseArgs({ options: { keep: { type: 'boolean', default: false } } })

const server = await startServer(flags.keep)
process.once('SIGINT', () => server.child.kill('SIGTERM'))
process.once('SIGTERM', () => server.child.kill('SIGTERM'))
try {
  await demonstrate(server)
  if (flags.keep) {
    console.log(
      `\nServing on gRPC ${server.grpcPort}, HTTP ${server.httpPort}, metrics ${server.metricsPort}. Ctrl-C ends it.`,
    )
    await server.exited
  }
} finally {
  server.child.kill('SIGTERM')
  await server.exited
}

async function demonstrate({ grpcPort, metricsPort }) {
  const degraded = PNG.sync.read(await readFile('model_repository/.samples/astronaut-degraded.png'))
  const { width, height } = degraded
  const client = new InferenceClient({ address: `127.0.0.1:${grpcPort}` })
  const image = {
    name: 'raw_image',
    datatype: 'UINT8',
    shape: [height, width, 3],
    data: toBgr(degraded),
  }
  const ask = async () => {
    const { outputs } = await client.infer({ modelName: ENSEMBLE, id: 'demo', inputs: [image] })
    return outputs[0].data
  }
  // The first request warms the caches of the engines; the figures are of the second.
  await ask()
  const before = await stepTimes(metricsPort)
  const started = performance.now()
  const restoredBgr = await ask()
  const wallMs = performance.now() - started
  const after = await stepTimes(metricsPort)
  client.close()

  const restored = fromBgr(restoredBgr, width, height)
  await mkdir(OUT, { recursive: true })
  await writeFile(join(OUT, 'restored.png'), PNG.sync.write(restored))
  await writeFile(join(OUT, 'side-by-side.png'), PNG.sync.write(sideBySide(degraded, restored)))

  console.log(`\n${ENSEMBLE}: ${width} x ${height} picture restored in ${wallMs.toFixed(1)} ms\n`)
  console.log('step                           queue ms   transfer ms   compute ms')
  for (const step of STEPS) {
    const [queue, transfer, compute] = ['queue', 'transfer', 'compute'].map((part) =>
      ((after.get(`${step}.${part}`) - before.get(`${step}.${part}`)) * 1000).toFixed(2),
    )
    console.log(
      `${step.padEnd(28)} ${queue.padStart(10)} ${transfer.padStart(13)} ${compute.padStart(12)}`,
    )
  }
  console.log(
    `\nwrote ${join(OUT, 'restored.png')} and ${join(OUT, 'side-by-side.png')} (degraded | restored)`,
  )
}

/** Starts `tutti serve`; resolves with its ports once it says that it is ready. */
async function startServer(keep) {
  const ports = keep ? [] : ['--grpc-port=0', '--http-port=0', '--metrics-port=0']
  const address = keep
    ? []
    : ['--grpc-address=127.0.0.1', '--http-address=127.0.0.1', '--metrics-address=127.0.0.1']
  const child = spawn(
    process.execPath,
    [
      'services/cli/dist/main.js',
      'serve',
      '--model-repository=model_repository',
      ...ports,
      ...address,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const exited = new Promise((resolve) => child.once('exit', resolve))
  for await (const line of createInterface({ input: child.stdout })) {
    const entry = parseLine(line)
    if (entry.level === 'warn' || entry.level === 'error') console.error(line)
    if (entry.message !== 'server ready') continue
    child.stdout.resume()
    return { child, exited, ...entry }
  }
  throw new Error(`the server ended before it was ready (exit code ${await exited})`)
}

function parseLine(line) {
  try {
    return JSON.parse(line)
  } catch {
    return {}
  }
}

/** Seconds that each step spent so far, from the server's own metrics: `step.part` -> seconds. */
async function stepTimes(port) {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text()
  const times = new Map()
  for (const line of text.split('\n')) {
    const found = /^tutti_step_(queue|transfer|compute)_seconds_sum\{(.*)\} (\S+)$/.exec(line)
    if (found === null || !found[2].includes(`ensemble="${ENSEMBLE}"`)) continue
    const step = /step="([^"]*)"/.exec(found[2])?.[1]
    times.set(`${step}.${found[1]}`, Number(found[3]))
  }
  return times
}

/** RGBA pixels -> BGR bytes, as OpenCV would give them. */
function toBgr({ data, width, height }) {
  const bgr = new Uint8Array(width * height * 3)
  for (let pixel = 0; pixel < width * height; pixel++) {
    for (let channel = 0; channel < 3; channel++)
      bgr[pixel * 3 + channel] = data[pixel * 4 + 2 - channel]
  }
  return bgr
}

function fromBgr(bgr, width, height) {
  const png = new PNG({ width, height })
  png.data.fill(255)
  for (let pixel = 0; pixel < width * height; pixel++) {
    for (let channel = 0; channel < 3; channel++)
      png.data[pixel * 4 + 2 - channel] = bgr[pixel * 3 + channel]
  }
  return png
}

function sideBySide(left, right) {
  const png = new PNG({ width: left.width + right.width, height: left.height })
  PNG.bitblt(left, png, 0, 0, left.width, left.height, 0, 0)
  PNG.bitblt(right, png, 0, 0, right.width, right.height, left.width, 0)
  return png
}
