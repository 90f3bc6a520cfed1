// README's first command: serves model_repository/, restores a degraded picture and reads a picture of text over gRPC, and
// shows where the time went. With --processes every model is a step process of its own, behind two routers and a nats-server.
import { parseArgs } from 'node:util'
import { findPython } from './demo/find-python.mjs'
import { OCR } from './demo/read-words.mjs'
import { FACE } from './demo/restore-face.mjs'
import { startProcesses } from './demo/start-processes.mjs'
import { startServer } from './demo/start-tutti.mjs'
import { runScript, SetupFailure } from './setup/failure.mjs'

await runScript(async () => {
  const flags = parseFlags()
  const { python, missing } = await findPython()
  const systems = python === undefined ? [FACE] : [FACE, OCR]
  const start = flags.processes ? startProcesses : startServer
  const started = await start(systems, { python, keep: flags.keep })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.once(signal, () => void started.stop())
  }
  try {
    for (const server of started.servers) {
      if (server.router !== undefined) console.log(`\nThrough ${server.router}:`)
      for (const system of systems) await system.show(server)
    }
    if (missing !== undefined) {
      console.log(`\n${OCR.ensemble}: skipped, for it needs a python3 with NumPy and Pillow:`)
      console.log(missing)
    }
    if (flags.keep) {
      for (const { grpcPort, httpPort, metricsPort } of started.servers) {
        console.log(`\nServing on gRPC ${grpcPort}, HTTP ${httpPort}, metrics ${metricsPort}.`)
      }
      console.log('Ctrl-C ends it.')
      await started.exited
    }
  } finally {
    await started.stop()
  }
  return 0
})

function parseFlags() {
  try {
    return parseArgs({
      options: {
        keep: { type: 'boolean', default: false },
        processes: { type: 'boolean', default: false },
      },
    }).values
  } catch (error) {
    throw new SetupFailure(`demo: ${error.message}. Want --keep, --processes or nothing.`)
  }
}
