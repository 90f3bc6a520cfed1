// Loaded before a program: writes to stderr at its end what it used, as `starts.ts` reads it.
process.on('exit', () => {
  const { userCPUTime, systemCPUTime, maxRSS } = process.resourceUsage()
  const usage = { cpuMs: (userCPUTime + systemCPUTime) / 1000, peakBytes: maxRSS * 1024 }
  process.getBuiltinModule('node:fs').writeSync(2, JSON.stringify(usage))
})
