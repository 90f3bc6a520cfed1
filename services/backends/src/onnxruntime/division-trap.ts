import { readFileSync, realpathSync } from 'node:fs'
import type koffiModule from 'koffi'

/*
 * ONNX Runtime divides integers without a look at the one quotient that its type does not have: the least integer by -1. On x86-64
 * the processor traps, and the signal ends the process: one request with such numbers for a model that divides what it is sent.
 * The handler below goes on behind the instruction with the quotient of two's complement, which is the dividend, and the rest 0.
 * It is what the kernels for short integers answer, and every processor without the trap. Divisors of 0 never come to it: ONNX
 * Runtime refuses them. It is machine code, since a handler in JavaScript would need the event loop, and costs nothing until then.
 */

/**
 * Machine code of the signal handler, one instruction a line: its bytes, then its text. The former action of the signal follows
 * the code in memory. The handler is called with a ucontext_t in rdx (glibc, x86-64).
 */
export const HANDLER = `
  488b82a8000000         mov rax,[rdx+0xa8]
  48b91111111111111111   movabs rcx,BEGIN
  4839c8                 cmp rax,rcx
  0f82e9000000           jb other
  48b92222222222222222   movabs rcx,END
  4839c8                 cmp rax,rcx
  0f83d6000000           jae other
  0fb608                 movzx ecx,byte [rax]
  4531c0                 xor r8d,r8d
  4189c9                 mov r9d,ecx
  4181e1f0000000         and r9d,0xf0
  4183f940               cmp r9d,0x40
  750d                   jne opcode
  4189c8                 mov r8d,ecx
  4183e008               and r8d,0x8
  48ffc0                 inc rax
  0fb608                 movzx ecx,byte [rax]
                         opcode:
  81f9f7000000           cmp ecx,0xf7
  0f85a7000000           jne other
  0fb64801               movzx ecx,byte [rax+0x1]
  4883c002               add rax,0x2
  4189c9                 mov r9d,ecx
  4183e138               and r9d,0x38
  4183f938               cmp r9d,0x38
  0f858e000000           jne other
  4189c9                 mov r9d,ecx
  4183e107               and r9d,0x7
  c1e906                 shr ecx,0x6
  83f903                 cmp ecx,0x3
  7428                   je dividend
  4183f904               cmp r9d,0x4
  750b                   jne displacement
  440fb608               movzx r9d,byte [rax]
  4183e107               and r9d,0x7
  48ffc0                 inc rax
                         displacement:
  83f901                 cmp ecx,0x1
  740f                   je byte1
  83f902                 cmp ecx,0x2
  7406                   je byte4
  4183f905               cmp r9d,0x5
  7507                   jne dividend
                         byte4:
  4883c003               add rax,0x3
                         byte1:
  48ffc0                 inc rax
                         dividend:
  488b8a90000000         mov rcx,[rdx+0x90]
  4c8b8a88000000         mov r9,[rdx+0x88]
  4585c0                 test r8d,r8d
  7512                   jne wide
  89c9                   mov ecx,ecx
  81f900000080           cmp ecx,0x80000000
  753a                   jne other
  4183f9ff               cmp r9d,0xffffffff
  7534                   jne other
  eb18                   jmp repair
                         wide:
  49ffc1                 inc r9
  752d                   jne other
  480fbaf13f             btr rcx,0x3f
  7326                   jae other
  4885c9                 test rcx,rcx
  7521                   jne other
  488b8a90000000         mov rcx,[rdx+0x90]
                         repair:
  48898a90000000         mov [rdx+0x90],rcx
  48c7828800000000000000 mov [rdx+0x88],0x0
  488982a8000000         mov [rdx+0xa8],rax
  c3                     ret
                         other:
  488d3515000000         lea rsi,[rip+0x15]
  31d2                   xor edx,edx
  bf08000000             mov edi,0x8
  41ba08000000           mov r10d,0x8
  b80d000000             mov eax,0xd
  0f05                   syscall
  c3                     ret
                         FORMER:
`

/** Placeholders in the code for the addresses between which it repairs. */
const [BEGIN, END] = ['11'.repeat(8), '22'.repeat(8)]
const [PAGE, READ_WRITE, READ_EXECUTE, PRIVATE_ANONYMOUS] = [4096, 3, 5, 0x22]
const SIGFPE = 8
/** rt_sigaction, and the kernel's struct sigaction: the handler, the flags, what returns from it, and a mask. */
const [SYS_SIGACTION, KERNEL_ACTION_BYTES, MASK_BYTES] = [13, 32, 8]
/** A handler with less is SIG_DFL or SIG_IGN. */
const LEAST_ADDRESS = 2n
const SA_SIGINFO = 4
/** struct sigaction: the handler, a mask of 128 bytes, the flags. */
const [SIGACTION_BYTES, FLAGS_AT] = [152, 136]

/** True where a division of the least integer by -1 traps and the handler can repair it: Linux on x86-64. */
export const CAN_TRAP = process.platform === 'linux' && process.arch === 'x64'

/**
 * Repairs such divisions in the code of a loaded library, for the life of this process. Every other trap is handled as before.
 *
 * @param library - its path.
 * @throws Error that names the system function which failed.
 */
export function repairDivisions(koffi: typeof koffiModule, library: string): void {
  if (!CAN_TRAP) return
  const code = codeRange(readFileSync('/proc/self/maps', 'utf8'), realpathSync(library))
  if (code !== undefined) installHandler(koffi, code)
}

/**
 * Finds the addresses between which the code of a library lies; undefined if it is not loaded.
 *
 * @param maps - text of /proc/self/maps.
 */
export function codeRange(maps: string, library: string): readonly [bigint, bigint] | undefined {
  const lines = maps
    .split('\n')
    .filter((line) => / ..x. /.test(line) && line.endsWith(` ${library}`))
  const ends = lines.flatMap((line) => (line.split(' ')[0] ?? '').split('-'))
  const [begin, end] = [ends[0], ends.at(-1)]
  return begin === undefined || end === undefined
    ? undefined
    : [BigInt(`0x${begin}`), BigInt(`0x${end}`)]
}

/**
 * Installs the handler for a range of addresses, unless it is already installed: another thread may load the library again.
 *
 * @param between - addresses of the instructions to repair.
 */
export function installHandler(
  koffi: typeof koffiModule,
  between: readonly [bigint, bigint],
): void {
  const libC = koffi.load(null)
  const bytes = Array.from(HANDLER.matchAll(/^ {2}([0-9a-f]+) /gm), ([, hex = '']) => hex).join('')
  const hexCode = bytes.replace(BEGIN, toHex(between[0])).replace(END, toHex(between[1]))
  const code = Buffer.from(hexCode, 'hex')
  const former = Buffer.alloc(KERNEL_ACTION_BYTES)
  const ask = libC.func('long syscall(long, long, void*, void*, long)')
  if (ask(SYS_SIGACTION, SIGFPE, null, former, MASK_BYTES) !== 0)
    throw new Error('rt_sigaction failed')
  const handler = former.readBigUInt64LE()
  const isSame = libC.func('int memcmp(uintptr_t, void*, size_t)')
  if (handler >= LEAST_ADDRESS && isSame(handler, code, code.byteLength) === 0) return
  const action = Buffer.alloc(SIGACTION_BYTES)
  action.writeBigUInt64LE(makeExecutable(koffi, Buffer.concat([code, former])))
  action.writeInt32LE(SA_SIGINFO, FLAGS_AT)
  const set = libC.func('int sigaction(int, void*, void*)')
  if (set(SIGFPE, action, null) !== 0) throw new Error('sigaction failed')
}

/** Copies code into executable memory, for the life of this process. @returns its address. */
export function makeExecutable(koffi: typeof koffiModule, code: Buffer): bigint {
  const libC = koffi.load(null)
  const size = Math.ceil(code.byteLength / PAGE) * PAGE
  const map = libC.func('uintptr_t mmap(void*, size_t, int, int, int, long)')
  const address = BigInt(map(null, size, READ_WRITE, PRIVATE_ANONYMOUS, -1, 0))
  if (address === 2n ** 64n - 1n) throw new Error('mmap failed')
  libC.func('void* memcpy(uintptr_t, void*, size_t)')(address, code, code.byteLength)
  // Never writable and executable at once, which some systems do not allow.
  if (libC.func('int mprotect(uintptr_t, size_t, int)')(address, size, READ_EXECUTE) !== 0) {
    throw new Error('mprotect failed')
  }
  return address
}

function toHex(address: bigint): string {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(address)
  return bytes.toString('hex')
}
