import { readFile } from 'node:fs/promises'
import { parseFlags, renderFlagTable } from '@tutti/chassis'
import t from 'tap'
import { checkSources, ROUTER_FLAGS } from './router-flags.ts'

/** Without the padding that the formatter gives to tables. */
function compact(text: string): string {
  return text.replaceAll(' ', '').replaceAll(/-{2,}/g, '--')
}

await t.test('README.md lists every flag', async (t) => {
  const readme = await readFile(new URL('../../README.md', import.meta.url), 'utf8')
  t.ok(compact(readme).includes(compact(renderFlagTable(ROUTER_FLAGS)).trim()))
})

await t.test('no flag takes a secret', async (t) => {
  for (const name of Object.keys(ROUTER_FLAGS)) {
    t.notMatch(name, /(password|token|creds|nkey|secret)$/, `${name} names a file`)
  }
})

function check(...argv: string[]): void {
  checkSources(parseFlags(ROUTER_FLAGS, argv).values)
}

await t.test('clients load and unload at tutti serve alone', async (t) => {
  for (const [flag, message] of [
    ['--model-control-mode=explicit', /"explicit", want one of none, poll/],
    ['--load-model=m', /unknown flag --load-model/],
  ] as const) {
    t.throws(() => check(flag), { reason: 'FLAG_INVALID', message })
  }
})

await t.test('on Kubernetes no flag chooses what is served', async (t) => {
  for (const flag of [
    '--model-repository=x',
    '--model-config-name=x',
    '--model-control-mode=poll',
  ]) {
    const [field] = flag.split('=')
    t.throws(() => check('--kubernetes', flag), {
      code: 'INVALID_ARGUMENT',
      reason: 'FLAG_INVALID',
      details: { field },
    })
    check(flag)
  }
  check('--kubernetes')
})
