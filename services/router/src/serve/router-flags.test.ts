import { parseFlags } from '@tutti/chassis'
import t from 'tap'
import { checkSources, ROUTER_FLAGS } from './router-flags.ts'

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

await t.test('routes for outside come from one source, a Secret on Kubernetes alone', async (t) => {
  const secret = '--edge-secret-name=tutti-router-edge'
  for (const [argv, message] of [
    [[secret], /given without --kubernetes; want --edge-file there/],
    [['--kubernetes', secret, '--edge-file=x'], /given with --edge-file; want one of them/],
  ] as const) {
    t.throws(() => check(...argv), {
      reason: 'FLAG_INVALID',
      message,
      details: { field: '--edge-secret-name' },
    })
  }
  check('--kubernetes', secret)
})
