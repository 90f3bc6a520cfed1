// README's first command: serves model_repository/, restores a degraded picture over gRPC and shows where the time went.
// With --processes every model is a step process of its own, behind two routers and a nats-server.
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { InferenceClient } from '@tutti/protocol'
import { PNG } from 'pngjs'
import { startProcesses } from './demo/start-processes.mjs'
import { doorFlags, startTutti } from './demo/start-tutti.mjs'
import { runScript } from './setup/failure.mjs'

const ENSEMBLE = 'ens_face_restoration_v2.1'
const STEPS = ['pre_gfpgan', 'infer_face_restoration_v2.1', 'post_gfpgan']
const OUT = 'out'

const { values: flags } = parseArgs({
  options: {
    keep: { type: 'boolean', default: false },
    processes: { type: 'boolean', default: false },
  },
})

await runScript(async () => {
  const server = flags.processes ? await startProcesses(STEPS, flags) : await startServer(flags)
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.once(signal, () => void server.stop())
  }
  try {
    for (const door of server.doors) {
      if (door.router !== undefined) console.log(`\nThrough ${door.router}:`)
      await demonstrate(door)
    }
    if (flags.keep) {
      for (const { grpcPort, httpPort, metricsPort } of server.doors) {
        console.log(`\nServing on gRPC ${grpcPort}, HTTP ${httpPort}, metrics ${metricsPort}.`)
      }
      console.log('Ctrl-C ends it.')
      await server.exited
    }
  } finally {
    await server.stop()
  }
  return 0
})

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

/** Starts `tutti serve`. */
async function startServer({ keep }) {
  const served = await startTutti([
    'serve',
    '--model-repository=model_repository',
    ...doorFlags(keep ? 8000 : undefined),
  ])
  return { doors: [served.ready], stop: served.stop, exited: served.exited }
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
