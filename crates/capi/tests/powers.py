"""Prints random numbers, edges among them; or, given a file of such numbers, their powers or products: [FILE pow | mul]"""

import secrets
import sys

DIGITS = 512
TOP = 1 << 4 * DIGITS


def numbers():
    last = 1
    for i in range(60):
        base, exponent, modulus = (secrets.randbelow(TOP) for _ in range(3))
        modulus |= i % 10 != 7
        base = [base, 0, 1, TOP - 1][i % 4] if i < 20 else base
        exponent = [0, 1, TOP - 1, exponent][i // 4 % 4] if i < 20 else exponent
        modulus = [modulus, 1, 3, TOP - 1][i // 2 % 4] if i < 16 else modulus
        # Neighbours with one modulus, even ones too.
        modulus = last if i > 20 and i % 5 == 3 else modulus
        last = modulus
        yield base, exponent, modulus


if len(sys.argv) > 1:
    with open(sys.argv[1], encoding="ascii") as lines:
        for line in lines:
            base, other, modulus = (int(field, 16) for field in line.split())
            result = pow(base, other, modulus or 1) if sys.argv[2] == "pow" else base * other % (modulus or 1)
            print(f"{result:0{DIGITS}x}" if modulus % 2 else "even modulus")
else:
    for row in numbers():
        print(*(f"{number:0{DIGITS}x}" for number in row))
