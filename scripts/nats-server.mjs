// Prints the path of a nats-server, which is built first if there is none: node scripts/nats-server.mjs
import { runScript } from './setup/failure.mjs'
import { ensureNatsServer } from './setup/nats-server.mjs'

await runScript(async () => {
  console.log(await ensureNatsServer())
  return 0
})
