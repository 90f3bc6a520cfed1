import { readFile } from 'node:fs/promises'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import t from 'tap'
import { askCudaDriver } from './cuda-driver.ts'
import { compileLibrary, withoutCompiler } from './testing/compile-library.ts'

/** A library of the driver's names: what it says is made for the test. */
const driverOf = (init: number, count: number): string => `
int cuInit(unsigned int flags) { return ${init}; }
int cuDeviceGetCount(int *count) { *count = ${count}; return 0; }
int cuGetErrorString(int code, const char **text) {
  *text = code == 100 ? "no CUDA-capable device is detected" : 0;
  return code == 100 ? 0 : 1;
}
`

await t.test('a machine without a driver says which library is absent', async (t) => {
  const driver = await askCudaDriver('libcuda-missing.so.1')
  t.match(driver, { count: 0, problem: /^libcuda-missing\.so\.1: .*No such file/s })
})

await t.test('a library that is no driver is none', async (t) => {
  t.match(await askCudaDriver('libc.so.6'), { count: 0, problem: /cuGetErrorString/ })
})

await t.test('a driver is asked for its devices', { skip: withoutCompiler }, async (t) => {
  t.same(await askCudaDriver(await compileLibrary(t, driverOf(0, 2))), { count: 2 })
  t.match(await askCudaDriver(await compileLibrary(t, driverOf(100, 2))), {
    count: 0,
    problem: /: cuInit says 100 \(no CUDA-capable device is detected\)$/,
  })
  t.match(await askCudaDriver(await compileLibrary(t, driverOf(999, 2))), {
    count: 0,
    problem: /: cuInit says 999 \(an unknown error\)$/,
  })
})

await t.test(
  'a driver that was asked stays loaded for others',
  { skip: withoutCompiler },
  async (t) => {
    const library = await compileLibrary(t, driverOf(0, 1))
    await askCudaDriver(library)
    setFlagsFromString('--expose-gc')
    const collect: unknown = runInNewContext('gc')
    if (typeof collect !== 'function') throw new Error('there is no garbage collector to call')
    // Finalizers run in turns after a collection, and what they let go goes in the next.
    for (let i = 0; i < 5; i += 1) {
      collect()
      await nextTurn()
    }
    t.match(await readFile('/proc/self/maps', 'utf8'), library)
  },
)
