/** `client-process.ts ADDRESS MODE`: asks, and says so, from a machine of its own. */
import { argv, stdout } from 'node:process'
import { InferenceClient } from '@tutti/protocol/client'
import { countedQuestion } from './counted.ts'

const [address = '', mode] = argv.slice(2)
const client = new InferenceClient({ address })
/** Ids of 0 are not counted. */
const ask = (holdMs: number, bytes: number): Promise<unknown> =>
  client.infer(countedQuestion({ id: 0, holdMs, bytes }).request)

if (mode === 'wait') {
  await ask(0, 16)
  const stream = client.openStream()
  const asked = [1, 2, 3, 4].map(() => ask(1000, 16))
  await stream.send(countedQuestion({ id: 0 }).request)
  stdout.write('asks\n')
  await Promise.all(asked)
} else {
  stdout.write('asks\n')
  await ask(0, 200_000)
  stdout.write('answered\n')
}
