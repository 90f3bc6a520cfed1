import t from 'tap'
import { ROOT, runProgram } from './serving.ts'

/** Says at its end which flags of Node the process has. */
const REPORT = `process.on('exit',()=>process.stderr.write(JSON.stringify(process.execArgv)))`
const SERVING = [
  '--external-memory-accounted-in-global-limit',
  '--initial-old-space-size=128',
  '--heap-growing-percent=25',
  '--no-allocation-site-pretenuring',
  '--invocation-count-for-turbofan=2000',
  '--min-semi-space-size=16',
  '--expose-gc',
]
const OPERATOR = ['--heap-growing-percent=25', '--max-semi-space-size=8', '--expose-gc']

await t.test('every program that serves sets its flags of V8 by itself', async (t) => {
  const cases: [string, string, readonly string[]][] = [
    ['services/cli', 'serve', SERVING],
    ['services/cli', 'router', SERVING],
    ['services/cli', 'validate', []],
    ['services/router', '--help', SERVING],
    ['services/step', '--help', SERVING],
    ['services/step', 'fetch', []],
    ['operator', '--help', OPERATOR],
  ]
  await Promise.all(
    cases.map(async ([folder, command, flags]) => {
      const argv = [`${ROOT}${folder}/dist/main.js`, command, '--help']
      const { code, out, err } = await runProgram(process.execPath, argv, {
        env: { ...process.env, NODE_OPTIONS: `--import=data:text/javascript,${REPORT}` },
      })
      t.same([code, JSON.parse(err)], [0, flags], `${folder} ${command}`)
      t.match(out, /--/)
    }),
  )
})
