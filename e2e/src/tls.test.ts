// needs: python
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { ROOT, refusedServe, runProgram, serve } from './serving.ts'
import { copyModels } from './temp-repository.ts'
import { runTritonChecks } from './triton-client.ts'

t.setTimeout(300_000)

// Executes docs/security.md: openssl
// Executes docs/security.md: npm run tutti
await t.test('the commands of docs/security.md serve over TLS to NVIDIA’s clients', async (t) => {
  const page = await readFile(join(ROOT, 'docs/security.md'), 'utf8')
  const folder = t.testdir()
  const made = page.match(/^openssl req .*$/gm) ?? []
  t.equal(made.length, 3)
  for (const line of made) {
    const ran = await runProgram('sh', ['-c', `cd '${folder}' && ${line}`])
    t.equal(ran.code, 0, line)
  }
  const file = (name: string): string => join(folder, name)
  const [, command = ''] = /^npm run tutti -- serve (.*-use-ssl.*)$/m.exec(page) ?? []
  const flags = command
    .split(' ')
    .filter((flag) => !flag.startsWith('--model-repository'))
    .map((flag) => flag.replace(/=(\w+\.(?:pem|key))$/, (_, name) => `=${file(name)}`))
  const repositories = [await copyModels(t, ['add_one_batch'])]
  const serving = await serve(t, { repositories, flags })
  const client = ['ca=ca.pem', 'cert=client.pem', 'key=client.key']
  const own = client.map((flag) => `--${flag.replace('=', `=${folder}/`)}`)
  await runTritonChecks(t, 'tls.py', serving, own)
  const { code, err } = await refusedServe({
    repositories,
    flags: flags.filter((flag) => !flag.startsWith('--grpc-root-cert')),
  })
  t.equal(code, 2)
  t.match(err, '--grpc-root-cert: got none with --grpc-use-ssl-mutual, want a PEM file')
})
