import { silentLogger, systemClock } from '@tutti/chassis'
import { openStepEndpoint } from '@tutti/transport'
import { faultyExecutor } from './faulty-executor.ts'

/* A step process of the models `m` and `n`, which tests kill. Its arguments: URL of the broker, name of the member, folder of the faults. */

const [url = '', member = '', folder = ''] = process.argv.slice(2)
await openStepEndpoint({
  broker: { servers: [url], prefix: 'tutti', repository: 'default' },
  clock: systemClock,
  log: silentLogger,
  answer: async () => ({}),
  member,
  executor: ({ model }) =>
    faultyExecutor(folder, model, () => process.kill(process.pid, 'SIGKILL')),
  describe: () => ({}),
  revisions: () => [
    ['m', 1, 'r'],
    ['n', 1, 'r'],
  ],
  load: () => ({ inFlight: 0, queued: 0, freeSlots: 8 }),
  onChange: () => () => {},
})
process.stdout.write('ready\n')
